//! Returns memory to the system.

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
