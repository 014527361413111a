-- Records a later driver of a move, if the move is recorded here.
-- Index: the primary key of tocsin.move.
UPDATE tocsin.move SET driver = $4 WHERE shard = $1 AND source = $2 AND target = $3 AND driver <= $4
