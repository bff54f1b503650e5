//! Starts processes that die with this one, even if it is killed.
//!
//! The kernel sends the death signal when the *thread* that started the process ends. Test threads end early, so one
//! thread that never ends starts all processes.

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
                // If the caller is gone, the process is dropped.
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

/// A command whose process dies with the thread that starts it. Uses `setpriv` of util-linux.
pub(crate) fn command_tied_to_thread(program: &std::path::Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}
