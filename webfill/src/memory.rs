//! Returns memory to the system.

/// Returns what this thread has freed, and what the allocator has kept of all threads. The allocator does so by itself
/// only while memory is allocated and freed, so a process with nothing to do would keep the memory of its last work.
pub fn release_unused_memory() {
    // SAFETY: this is the allocator's own function, which may be called from any thread at any time.
    #[allow(unsafe_code)]
    unsafe {
        mi_collect(true);
    }
}

// Of mimalloc, which is linked as the allocator of this program.
#[allow(unsafe_code)]
unsafe extern "C" {
    fn mi_collect(force: bool);
}
