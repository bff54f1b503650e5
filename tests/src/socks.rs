//! A SOCKS5 proxy (RFC 1928). It records the requested addresses, but always connects to the same server.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const IPV4: u8 = 1;
const DOMAIN: u8 = 3;

/// A SOCKS proxy that runs until the test ends.
pub struct SocksProxy {
    address: SocketAddr,
    noted: Arc<Mutex<ProxyLog>>,
}

/// The addresses that clients of the proxy have requested, and their logins.
#[derive(Debug, Clone, Default)]
pub struct ProxyLog {
    /// The requested `HOST:PORT` of each connection.
    pub targets: Vec<String>,
    /// The `USER:PASSWORD` of each client that has sent a login (RFC 1929).
    pub logins: Vec<String>,
}

impl SocksProxy {
    /// Starts a proxy that always connects to `server`, whatever address a client requests.
    pub fn start(server: SocketAddr) -> SocksProxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let noted = Arc::<Mutex<ProxyLog>>::default();
        let notes = Arc::clone(&noted);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let notes = Arc::clone(&notes);
                // Errors are ignored, because a client may close its connection at any time.
                thread::spawn(move || serve_client(client, server, &notes));
            }
        });
        SocksProxy { address, noted }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn proxy_log(&self) -> ProxyLog {
        lock(&self.noted).clone()
    }
}

fn lock(noted: &Mutex<ProxyLog>) -> std::sync::MutexGuard<'_, ProxyLog> {
    noted.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve_client(
    mut client: TcpStream,
    server: SocketAddr,
    noted: &Mutex<ProxyLog>,
) -> io::Result<()> {
    if let Some(login) = handshake(&mut client)? {
        lock(noted).logins.push(login);
    }
    let target = read_target(&mut client)?;
    lock(noted).targets.push(target);
    let upstream = TcpStream::connect(server)?;
    client.write_all(&[VERSION, 0, 0, IPV4, 0, 0, 0, 0, 0, 0])?;
    let (from, to) = (client.try_clone()?, upstream.try_clone()?);
    thread::spawn(move || forward(from, to));
    forward(upstream, client)
}

/// Performs the handshake. Returns `USER:PASSWORD` if the client sends a login.
fn handshake(client: &mut TcpStream) -> io::Result<Option<String>> {
    let [_version, count] = read_array(client)?;
    let methods = read_vec(client, count)?;
    if !methods.contains(&USER_AND_PASSWORD) {
        client.write_all(&[VERSION, NO_AUTHENTICATION])?;
        return Ok(None);
    }
    client.write_all(&[VERSION, USER_AND_PASSWORD])?;
    let [_version, length] = read_array(client)?;
    let user = read_text(client, length)?;
    let [length] = read_array(client)?;
    let password = read_text(client, length)?;
    client.write_all(&[1, 0])?;
    Ok(Some(format!("{user}:{password}")))
}

fn read_target(client: &mut TcpStream) -> io::Result<String> {
    let [_version, _command, _reserved, kind] = read_array(client)?;
    let host = match kind {
        IPV4 => Ipv4Addr::from(read_array::<4>(client)?).to_string(),
        DOMAIN => {
            let [length] = read_array(client)?;
            read_text(client, length)?
        }
        other => return Err(io::Error::other(format!("address type {other}"))),
    };
    let port = u16::from_be_bytes(read_array(client)?);
    Ok(format!("{host}:{port}"))
}

fn read_array<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_vec(client: &mut TcpStream, length: u8) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length.into()];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_text(client: &mut TcpStream, length: u8) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read_vec(client, length)?).into_owned())
}

fn forward(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    io::copy(&mut from, &mut to)?;
    to.shutdown(Shutdown::Write)
}
