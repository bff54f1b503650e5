//! Connections from chosen loopback addresses. Without a choice, the system would use the same address for all of them.

use std::net::{IpAddr, SocketAddr, TcpStream};

use tokio::net::TcpSocket;

/// Connects from this address. The connection uses blocking I/O.
pub fn connect_from(from: &str, host: &str, port: u16) -> TcpStream {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(address(from), 0))?;
        let to = SocketAddr::new(address(host), port);
        socket.connect(to).await?.into_std()
    });
    let stream = stream.expect("it listens");
    stream.set_nonblocking(false).expect("an option");
    stream
}
