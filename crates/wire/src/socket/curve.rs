//! CURVE, libzmq's encryption and authentication: makes key pairs and sets the keys of sockets.

use libc::{c_char, c_int, c_void};

use super::Pattern;
use super::authenticator::Admission;
use crate::keys::{ClientKeys, KeyPair, PublicKey, Role, SecretKey, ServerKeys};

/// libzmq's ZMQ_ZAP_ENFORCE_DOMAIN, which the `zmq` crate does not know. Without this option, a CURVE server that has
/// no ZAP handler admits every key.
const ZAP_ENFORCE_DOMAIN: c_int = 93;

// Part of libzmq since 4.2, but not among the functions that `zmq_sys` makes public.
#[allow(unsafe_code)]
unsafe extern "C" {
    fn zmq_curve_public(z85_public_key: *mut c_char, z85_secret_key: *const c_char) -> c_int;
}

/// Whether this libzmq can encrypt. It cannot if it was built without libsodium.
pub fn has_curve() -> bool {
    zmq::has("curve") == Some(true)
}

/// Makes a new pair of keys.
pub fn new_key_pair() -> Result<KeyPair, CurveError> {
    let made = zmq::CurveKeyPair::new().map_err(|_| CurveError)?;
    let public = PublicKey::from_bytes(&made.public_key).ok_or(CurveError)?;
    let secret = SecretKey::from_bytes(made.secret_key);
    Ok(KeyPair { public, secret })
}

/// Makes the key pair that belongs to a secret key.
pub fn key_pair_from_secret(secret: SecretKey) -> Result<KeyPair, CurveError> {
    let mut text = secret.to_secret_text().into_bytes();
    text.push(0);
    let mut public = [0u8; 41];
    // SAFETY: libzmq reads a C string and writes 40 characters and a NUL.
    #[allow(unsafe_code)]
    let result = unsafe {
        zmq_curve_public(
            public.as_mut_ptr().cast::<c_char>(),
            text.as_ptr().cast::<c_char>(),
        )
    };
    if result != 0 {
        return Err(CurveError);
    }
    let public = std::str::from_utf8(&public[..40]).map_err(|_| CurveError)?;
    let public = public.parse().map_err(|_| CurveError)?;
    Ok(KeyPair { public, secret })
}

/// The error if libzmq cannot encrypt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this libzmq was built without CURVE: install one with libsodium, such as Debian's libzmq5"
)]
pub struct CurveError;

/// Makes a socket a server that admits only peers with this role. Its ZAP domain names the requirements to the
/// authentication handler ([`super::authenticator`]).
pub(super) fn set_server_keys(
    socket: &mut zmq::Socket,
    keys: &ServerKeys,
    role: Role,
    pattern: Pattern,
) -> zmq::Result<()> {
    socket.set_curve_server(true)?;
    socket.set_curve_secretkey(keys.own.secret.bytes())?;
    socket.set_zap_domain(Admission::for_socket(role, pattern).domain())?;
    enforce_domain(socket)
}

/// Makes a socket a client that connects only to the owner of the trusted key that is tried now.
pub(super) fn set_client_keys(socket: &zmq::Socket, keys: &ClientKeys) -> zmq::Result<()> {
    socket.set_curve_serverkey(keys.trusted.current_key().key.bytes())?;
    socket.set_curve_publickey(keys.own.public.bytes())?;
    socket.set_curve_secretkey(keys.own.secret.bytes())
}

fn enforce_domain(socket: &mut zmq::Socket) -> zmq::Result<()> {
    let on: c_int = 1;
    // SAFETY: the socket is open, and the option's value is an int that lives through the call.
    #[allow(unsafe_code)]
    let result = unsafe {
        zmq_sys::zmq_setsockopt(
            socket.as_mut_ptr(),
            ZAP_ENFORCE_DOMAIN,
            (&raw const on).cast::<c_void>(),
            size_of::<c_int>(),
        )
    };
    match result {
        0 => Ok(()),
        // SAFETY: reads the thread's last error.
        #[allow(unsafe_code)]
        _ => Err(zmq::Error::from_raw(unsafe { zmq_sys::zmq_errno() })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{AllowList, RotationFiles, TrustedKeys};

    #[test]
    fn the_public_key_is_derived_from_the_secret_key() {
        assert!(has_curve(), "Debian's libzmq has CURVE");
        let made = new_key_pair().unwrap();
        assert_eq!(key_pair_from_secret(made.secret.clone()), Ok(made.clone()));
        assert_ne!(new_key_pair().unwrap().public, made.public);
    }

    /// Shows why the option ZMQ_ZAP_ENFORCE_DOMAIN is worth its unsafe call: without it, libzmq admits every key as
    /// long as there is no ZAP handler.
    #[test]
    fn without_a_zap_handler_no_key_is_admitted() {
        for enforced in [true, false] {
            let (server, client) = (new_key_pair().unwrap(), new_key_pair().unwrap());
            let context = zmq::Context::new();
            let mut pull = context.socket(zmq::PULL).unwrap();
            if enforced {
                let allowed = AllowList::empty();
                let keys = ServerKeys {
                    own: server.clone(),
                    allowed,
                    of_rotation: RotationFiles::default(),
                };
                set_server_keys(&mut pull, &keys, Role::Supervisor, Pattern::Pull).unwrap();
            } else {
                pull.set_curve_server(true).unwrap();
                pull.set_curve_secretkey(server.secret.bytes()).unwrap();
                pull.set_zap_domain("supervisor").unwrap();
            }
            pull.bind("tcp://127.0.0.1:*").unwrap();
            let endpoint = pull.get_last_endpoint().unwrap().unwrap();
            let push = context.socket(zmq::PUSH).unwrap();
            push.set_linger(0).unwrap();
            let keys = ClientKeys {
                own: client,
                trusted: TrustedKeys::from_fixed_key(server.public),
            };
            set_client_keys(&push, &keys).unwrap();
            push.connect(&endpoint).unwrap();
            push.send("let me in", zmq::DONTWAIT).unwrap();
            let wait_ms = if enforced { 500 } else { 10_000 };
            let heard = pull.poll(zmq::POLLIN, wait_ms).unwrap() > 0;
            assert_eq!(heard, !enforced);
        }
    }
}
