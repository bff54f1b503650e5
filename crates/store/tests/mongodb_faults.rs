//! MongoDB servers that are killed, stopped, paused, filled up or replaced while pages are saved, and other faults
//! that only servers have. No acknowledged page is lost, none is stored twice, and saving continues by itself.

mod answers;
mod disk;
mod follower;
mod servers;
mod writer;
