CREATE FUNCTION file AS path -> toString(throwIf(true, 'file() is closed in this store'))
