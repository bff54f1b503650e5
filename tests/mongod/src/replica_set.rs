//! Several servers that form a replica set.

use mongodb::Client;
use mongodb::bson::doc;

use crate::mongod::SET;
use crate::{Mongod, wait_for};

/// A replica set on loopback that elects another primary quickly.
pub struct ReplicaSet {
    pub members: Vec<Mongod>,
}

impl ReplicaSet {
    /// Starts a replica set with this many members, and waits until it accepts writes.
    pub fn start(count: usize) -> ReplicaSet {
        let members = (0..count)
            .map(|_| Mongod::start_member(&[], &std::env::temp_dir()))
            .collect();
        let set = ReplicaSet { members };
        set.members[0].initiate(&set.addresses());
        set
    }

    /// Like [`ReplicaSet::start`], but at an address of this machine that other machines can reach.
    pub fn start_at(host: &str, count: usize) -> ReplicaSet {
        let members = (0..count).map(|_| Mongod::start_member_at(host)).collect();
        let set = ReplicaSet { members };
        set.members[0].initiate(&set.addresses());
        set
    }

    /// The URI of a database on this replica set. It names every member.
    pub fn uri(&self, database: &str) -> String {
        let hosts = self.addresses().join(",");
        format!("mongodb://{hosts}/{database}?replicaSet={SET}")
    }

    /// The index in [`ReplicaSet::members`] of the member that accepts writes now. Waits until there is one.
    pub fn primary(&self) -> usize {
        let hosts = self.addresses();
        self.members[0].wait_until_writable(&hosts.join(","));
        let uri = self.uri("admin");
        let hello = wait_for(async {
            let client = Client::with_uri_str(&uri).await?;
            client
                .database("admin")
                .run_command(doc! {"hello": 1})
                .await
        });
        let hello = hello.expect("a primary that was just there");
        let primary = hello.get_str("primary").expect("a member's answer");
        let index = hosts.iter().position(|host| host == primary);
        index.expect("a member of this set")
    }

    fn addresses(&self) -> Vec<String> {
        self.members.iter().map(Mongod::address).collect()
    }
}
