/* Loaded into a process (LD_PRELOAD): syncs do nothing, as on a machine that never loses its power. */

int fsync(int file) { return file < 0 ? -1 : 0; }

int fdatasync(int file) { return fsync(file); }
