-- The identity of the database that answers.
SELECT {{identity}}
