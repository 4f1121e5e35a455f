"""Reads and writes twgen's own documents: snapshots, ledgers, intents, statuses and OperatorConfigs."""
