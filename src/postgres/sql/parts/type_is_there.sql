-- Of dead jobs h. A removed type keeps its row; a race with its removal is as good as a create just before it.
AND NOT EXISTS (SELECT FROM tocsin.biz_type t WHERE t.type_id = h.type_id AND t.removed_at IS NOT NULL)
