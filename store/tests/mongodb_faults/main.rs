//! Servers that are killed, stopped, paused, filled up and replaced while pages are saved, and what
//! else only a server does: nothing that was acknowledged is lost, nothing is stored twice, and
//! saving goes on by itself.

mod answers;
mod disk;
mod follower;
mod servers;
mod writer;
