//! Keeps the memory of processes small.

/// Keeps this process, and those that it starts, from using huge pages. The allocator asks for them, and then each
/// region of 2 MiB takes all of its memory as soon as a part of it is used: a worker with nothing to do took 17 MiB
/// instead of 5.
pub fn avoid_huge_pages() {
    // SAFETY: the call only changes how the kernel provides memory. If it fails, as in an old kernel, all works as before.
    #[allow(unsafe_code)]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// Returns memory to the system: what this thread has freed, and what the allocator has kept of all threads. By itself,
/// the allocator does so only while memory is allocated and freed. So a process with nothing to do would keep the
/// memory of its last work.
pub fn release_unused_memory() {
    // SAFETY: this is the allocator's own function, which may be called from any thread at any time.
    #[allow(unsafe_code)]
    unsafe {
        mi_collect(true);
    }
}

// A function of mimalloc, the allocator of this program.
#[allow(unsafe_code)]
unsafe extern "C" {
    fn mi_collect(force: bool);
}
