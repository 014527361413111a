-- A setting for the rest of the transaction.
SET LOCAL {{setting}} = {{value}}
