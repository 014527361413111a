-- The subscription reaches its source by {{source}} from now on.
-- Index: none is read.
ALTER SUBSCRIPTION {{subscription}} CONNECTION {{source}}
