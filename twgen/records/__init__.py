"""Values that are kept as documents, and back: snapshots and ledgers."""
