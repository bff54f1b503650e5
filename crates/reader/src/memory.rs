//! Records whether memory ran out while a document was read. The process may then abort with a message on standard
//! error. But libraries may also return errors of their own, or leave out the parts that did not fit.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_REFUSED: AtomicBool = AtomicBool::new(false);

/// An allocator that wraps another one and records its failures.
pub struct NotingAllocator<A>(pub A);

fn note_failure(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        WAS_REFUSED.store(true, Ordering::Relaxed);
    }
    memory
}

/// Whether an allocation failed in this process.
pub(crate) fn has_allocation_failed() -> bool {
    WAS_REFUSED.load(Ordering::Relaxed)
}

// SAFETY: all calls are passed on to the wrapped allocator unchanged.
#[allow(unsafe_code)]
unsafe impl<A: GlobalAlloc> GlobalAlloc for NotingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller of this method keeps the rules that the wrapped allocator demands.
        note_failure(unsafe { self.0.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller of this method keeps the rules that the wrapped allocator demands.
        note_failure(unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller of this method keeps the rules that the wrapped allocator demands.
        note_failure(unsafe { self.0.realloc(memory, layout, bytes) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller of this method keeps the rules that the wrapped allocator demands.
        unsafe { self.0.dealloc(memory, layout) }
    }
}
