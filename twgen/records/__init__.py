"""Read and write documents that hold values: snapshots, ledgers, intents and statuses."""
