CREATE TABLE bodies (
    _id TEXT NOT NULL UNIQUE,    -- the page's
    content_hash TEXT NOT NULL,  -- the page's
    is_rendered INTEGER NOT NULL,
    at TEXT NOT NULL,            -- when it was fetched, or last found unchanged
    epoch INTEGER NOT NULL,
    task INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    bytes INTEGER NOT NULL,      -- before compression
    size INTEGER NOT NULL,       -- what it takes
    body BLOB NOT NULL           -- Zstandard
) STRICT;
CREATE TABLE total (size INTEGER NOT NULL) STRICT;
CREATE INDEX bodies_by_time ON bodies (at);
CREATE TRIGGER added AFTER INSERT ON bodies BEGIN
    UPDATE total SET size = size + NEW.size;
END;
CREATE TRIGGER removed AFTER DELETE ON bodies BEGIN
    UPDATE total SET size = size - OLD.size;
END;
CREATE TRIGGER replaced AFTER UPDATE OF size ON bodies BEGIN
    UPDATE total SET size = size + NEW.size - OLD.size;
END;
