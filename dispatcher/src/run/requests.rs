//! Handles the requests of clients, in each turn of the loop for a limited time, however many wait. Long lists are
//! carried out in pieces, between other requests.

use std::time::{Duration, Instant};

use webfill_api::Refusal;
use webfill_scheduler::effects::Client;
use webfill_scheduler::frontier::ignore_pruned;
use webfill_scheduler::rights;
use webfill_service::Fault;

use super::Process;
use super::opening::frontier_fault;
use crate::request_reader::ClientRequest;

/// The maximum time that one turn spends on requests. At least one request and one piece of a list are taken.
const REQUESTS_FOR: Duration = Duration::from_millis(40);

impl Process {
    pub(super) fn handle_requests(&mut self) -> Result<(), Fault> {
        let until = Instant::now() + REQUESTS_FOR;
        loop {
            let core = &self.core;
            let next = self
                .inbox
                .requests
                .pop_next(|_, request| !core.is_feeding_of(&request.requester.client));
            let is_idle = next.is_none();
            if let Some((_, request)) = next {
                self.handle_request(request)?;
            }
            let now_ms = self.clock.now_ms();
            let fed = self.core.advance_feeds(now_ms).map_err(frontier_fault)?;
            if (is_idle && !fed) || Instant::now() >= until {
                return Ok(());
            }
        }
    }

    fn handle_request(&mut self, request: ClientRequest) -> Result<(), Fault> {
        let ClientRequest { requester, asked } = request;
        let is_question = asked
            .as_ref()
            .is_ok_and(|asked| !rights::changes_something(asked));
        if is_question && self.has_no_receiver(&requester.client) {
            return Ok(());
        }
        let permit = requester.client.permit();
        let asked = match permit.is_some_and(|permit| permit.has_unread()) {
            true => asked.and_then(|_| {
                let why = "too many unread answers: read them first";
                Err(Refusal::temporary("$", why))
            }),
            false => asked,
        };
        let now_ms = self.clock.now_ms();
        let done = self.core.handle_request(requester, asked, now_ms);
        ignore_pruned(done, ()).map_err(frontier_fault)
    }

    /// Whether nobody waits for the answer to this request any more.
    fn has_no_receiver(&self, client: &Client) -> bool {
        match client {
            Client::Http(asker) => !self.pending_requests.is_waited_for(asker.number),
            client => client
                .permit()
                .is_some_and(|permit| permit.has_no_receiver()),
        }
    }
}
