-- What a database knows about itself: names, place, shards, number of databases it is the control database of, empty.
-- Index: none; tocsin.place is one row, and of the job tables one row each is read.
SELECT current_database(), p.installation, p.place, p.name, p.shards, (SELECT count(*) FROM tocsin.database),
       NOT EXISTS (SELECT FROM tocsin.job_live) AND NOT EXISTS (SELECT FROM tocsin.job_history)
       AND NOT EXISTS (SELECT FROM tocsin.biz_type)
FROM tocsin.place p
