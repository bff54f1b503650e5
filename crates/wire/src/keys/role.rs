//! The role of a process, and which names and ids the owner of a key may have.

use std::fmt;
use std::str::FromStr;

/// The role of a process that connects to the dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A process that takes tasks and reports their outcomes.
    Supervisor,
    /// A process that submits crawls and requests information about them.
    Client,
}

impl Role {
    pub const ALL: [Role; 2] = [Role::Supervisor, Role::Client];

    /// The stable name of the role, as used in the allow-list and in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Supervisor => "supervisor",
            Role::Client => "client",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let found = Role::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is not a role: expected `supervisor` or `client`"))
    }
}

/// Whether the owner of a key listed as `name` may use the id `id`. The id must be that name, or `NAME:ANYTHING` if
/// several processes share the key. Names have no colon, so no owner can use an id that belongs to another key.
pub fn may_use_id(name: &str, id: &str) -> bool {
    match id.strip_prefix(name) {
        Some(rest) => rest.is_empty() || rest.starts_with(':'),
        None => false,
    }
}

/// Whether a key may be listed under this name.
pub fn is_valid_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_must_belong_to_the_name_of_the_key() {
        assert!(may_use_id("vm-01", "vm-01"));
        assert!(may_use_id("swarm", "swarm:i-0abc"));
        for id in ["vm-02", "vm-011", "vm-01.x", "vm-0", "", ":", "x:vm-01"] {
            assert!(!may_use_id("vm-01", id), "{id}");
        }
        assert!(is_valid_name("vm-01.example.org") && is_valid_name(&"x".repeat(64)));
        for name in ["", "a b", "a:b", "ä", "a\n", &"x".repeat(65)] {
            assert!(!is_valid_name(name), "{name}");
        }
    }
}
