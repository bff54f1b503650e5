//! Starts processes that end when this process ends, even if this process is killed.
//!
//! The kernel sends the death signal when the *thread* that started the process ends. Test threads end early, so all
//! processes are started by one thread that never ends.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

type Order = (Command, Sender<io::Result<Child>>);

/// Starts `command`, which should come from [`command_tied_to_thread`].
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static ORDERS: OnceLock<Sender<Order>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| {
        let (orders, queue) = channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in queue {
                // If the receiver is gone because the caller no longer waits for the process, the handle is dropped.
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    let (answer, spawned) = channel();
    let order = (command, answer);
    orders.send(order).expect("the thread never ends");
    spawned.recv().expect("the thread never ends")
}

/// A command whose process is killed when the thread that started it ends. Uses `setpriv` of util-linux.
pub(crate) fn command_tied_to_thread(program: &std::path::Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}
