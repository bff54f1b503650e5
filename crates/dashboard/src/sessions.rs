//! Sessions of browsers that have logged in with a token. A session stores its token's digest, and is valid only while
//! the token is on the current list. All sessions are lost when the process ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use webfill_service::http::TokenDigest;

use crate::secrets::new_secret;

/// How many sessions there may be. A further one replaces the session that was idle for longest.
const MOST: usize = 200;

/// How long a session lasts after its login.
pub(crate) const LASTS: Duration = Duration::from_secs(12 * 3_600);

/// How long a session lasts after its last request.
const IDLE: Duration = Duration::from_secs(2 * 3_600);

#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Session>>);

#[derive(Debug, Clone, Copy)]
struct Session {
    token: TokenDigest,
    since: Instant,
    used: Instant,
}

impl Session {
    fn is_valid(&self, now: Instant) -> bool {
        now.duration_since(self.since) < LASTS && now.duration_since(self.used) < IDLE
    }
}

impl Sessions {
    /// Begins a session. Returns its id.
    pub(crate) fn begin(&self, token: TokenDigest, now: Instant) -> std::io::Result<String> {
        let id = new_secret()?;
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.is_valid(now));
        if sessions.len() >= MOST {
            let idlest = sessions.iter().min_by_key(|(_, session)| session.used);
            let idlest = idlest.map(|(id, _)| id.clone());
            idlest.map(|id| sessions.remove(&id));
        }
        let session = Session {
            token,
            since: now,
            used: now,
        };
        sessions.insert(id.clone(), session);
        Ok(id)
    }

    /// The digest of the token that a session began with, if the session is valid. This use renews the session.
    pub(crate) fn renew_and_get_token(&self, id: &str, now: Instant) -> Option<TokenDigest> {
        let mut sessions = self.lock();
        let session = sessions
            .get_mut(id)
            .filter(|session| session.is_valid(now))?;
        session.used = now;
        Some(session.token)
    }

    pub(crate) fn end(&self, id: &str) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: TokenDigest = [7; 32];

    #[test]
    fn a_session_stays_valid_while_it_is_used_but_not_forever() {
        let sessions = Sessions::default();
        let mut now = Instant::now();
        let id = sessions.begin(TOKEN, now).unwrap();
        let began = now;
        while now.duration_since(began) < LASTS {
            assert_eq!(sessions.renew_and_get_token(&id, now), Some(TOKEN));
            now += IDLE / 2;
        }
        assert_eq!(
            sessions.renew_and_get_token(&id, now),
            None,
            "it has lasted for its time"
        );
        let idle = sessions.begin(TOKEN, now).unwrap();
        assert_eq!(sessions.renew_and_get_token(&idle, now + IDLE), None);
        assert_eq!(sessions.renew_and_get_token("", now), None);
    }

    #[test]
    fn a_session_ends_at_the_logout_and_others_continue() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let [one, other] = [0, 1].map(|_| sessions.begin(TOKEN, now).unwrap());
        sessions.end(&one);
        assert_eq!(sessions.renew_and_get_token(&one, now), None);
        assert_eq!(sessions.renew_and_get_token(&other, now), Some(TOKEN));
    }

    #[test]
    fn the_session_that_is_idle_for_longest_is_replaced() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let ids: Vec<String> = (0..MOST)
            .map(|_| sessions.begin(TOKEN, now).unwrap())
            .collect();
        let later = now + Duration::from_secs(1);
        for id in &ids[1..] {
            sessions.renew_and_get_token(id, later);
        }
        let newest = sessions.begin(TOKEN, later).unwrap();
        assert_eq!(sessions.lock().len(), MOST);
        assert_eq!(sessions.renew_and_get_token(&ids[0], later), None);
        assert!(sessions.renew_and_get_token(&newest, later).is_some());
    }
}
