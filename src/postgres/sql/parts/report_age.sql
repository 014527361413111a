-- How long report rows, audit records and ended bulk operations are kept.
interval '400 days'
