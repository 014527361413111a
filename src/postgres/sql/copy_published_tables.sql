-- Tables of a publication.
-- Index: those of the catalog; a publication has one row per day of history and some more.
SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = $1
