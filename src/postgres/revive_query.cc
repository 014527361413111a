// Replaced by sql/parts/revive.sql; to be deleted.
