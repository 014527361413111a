-- Tables of a publication.
SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = $1
