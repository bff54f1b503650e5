//! The data that other threads share with the thread of the sockets: commands that wait for it, and what it reports
//! back.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

use super::outgoing::OutgoingFrame;
use super::{SocketError, SocketName, SocketSpec, Traffic};
use crate::keys::ListChange;

pub(super) enum Command {
    Open(Box<SocketSpec>, mpsc::Sender<Result<(), SocketError>>),
    Close(SocketName),
    Send(SocketName, OutgoingFrame),
    SendNow(SocketName, Vec<u8>),
    Publish(SocketName, Vec<u8>, Vec<u8>),
    Stop,
}

impl Command {
    /// The socket that this command sends a frame on; `None` if it sends none.
    pub(super) fn sending_socket(&self) -> Option<SocketName> {
        match self {
            Command::Send(name, ..) | Command::SendNow(name, _) | Command::Publish(name, ..) => {
                Some(*name)
            }
            Command::Open(..) | Command::Close(_) | Command::Stop => None,
        }
    }
}

/// The commands that other threads have queued for the thread of the sockets.
pub(super) struct CommandQueue {
    queue: Mutex<VecDeque<Command>>,
    /// An eventfd that is polled together with the sockets, so that a command wakes their thread.
    pub(super) wake: OwnedFd,
    /// Whether the thread was woken and has not taken the commands yet. So a burst of commands costs one system call.
    woken: AtomicBool,
    /// Why a server last refused a socket of this process.
    not_admitted: Mutex<Option<&'static str>>,
    /// Changes of the list of admitted keys that the owner has not taken yet.
    list_changes: Mutex<Vec<ListChange>>,
    traffic: Mutex<BTreeMap<SocketName, Traffic>>,
}

impl CommandQueue {
    pub(super) fn new() -> std::io::Result<CommandQueue> {
        // SAFETY: eventfd has no preconditions; the result is checked before it is owned.
        #[allow(unsafe_code)]
        let wake = unsafe {
            let fd = libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
            if fd < 0 {
                return Err(std::io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(CommandQueue {
            queue: Mutex::default(),
            wake,
            woken: AtomicBool::new(false),
            not_admitted: Mutex::default(),
            list_changes: Mutex::default(),
            traffic: Mutex::default(),
        })
    }

    pub(super) fn refusal_reason(&self) -> Option<&'static str> {
        let why = self.not_admitted.lock();
        *why.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_refusal(&self, why: &'static str) {
        let noted = self.not_admitted.lock();
        *noted.unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    pub(super) fn take_list_changes(&self) -> Vec<ListChange> {
        let changes = self.list_changes.lock();
        std::mem::take(&mut *changes.unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn note_list_change(&self, change: ListChange) {
        let changes = self.list_changes.lock();
        let mut changes = changes.unwrap_or_else(PoisonError::into_inner);
        changes.push(change);
    }

    pub(super) fn traffic(&self) -> BTreeMap<SocketName, Traffic> {
        let traffic = self.traffic.lock();
        traffic.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note_traffic(&self, socket: SocketName, count: impl FnOnce(&mut Traffic)) {
        let traffic = self.traffic.lock();
        let mut traffic = traffic.unwrap_or_else(PoisonError::into_inner);
        count(traffic.entry(socket).or_default());
    }

    pub(super) fn push(&self, command: Command) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(command);
        drop(queue);
        if !self.woken.swap(true, Ordering::AcqRel) {
            let one = 1u64.to_ne_bytes();
            // SAFETY: the descriptor is an eventfd that lives as long as `self`, and the buffer has 8 bytes.
            #[allow(unsafe_code)]
            unsafe {
                libc::write(self.wake.as_raw_fd(), one.as_ptr().cast(), one.len());
            }
        }
    }

    pub(super) fn take_all(&self) -> VecDeque<Command> {
        let mut counter = [0u8; 8];
        // SAFETY: the descriptor is an eventfd that lives as long as `self`, and the buffer has 8 bytes. The descriptor
        // is non-blocking, so reading an unset one returns immediately.
        #[allow(unsafe_code)]
        unsafe {
            libc::read(
                self.wake.as_raw_fd(),
                counter.as_mut_ptr().cast(),
                counter.len(),
            );
        }
        self.woken.store(false, Ordering::Release);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut queue)
    }
}
