//! The supervisors: they join (hello), renew their leases (heartbeat), leave (goodbye) or are lost
//! (silence).

use webfill_wire::{
    DispatcherToSupervisor, Hello, Lane, MappingsVersion, ReturnCause, SupervisorHeartbeat,
    SupervisorToDispatcher, TaskReturned,
};

use super::Core;
use super::requests::Gone;
use crate::caller::Caller;
use crate::dispatch::{Greeting, HeartbeatReply, Lease};
use crate::frontier::{FrontierError, SavedSupervisor, TaskId};
use crate::mappings::Mappings;

impl Core {
    pub fn handle_supervisor_message(
        &mut self,
        peer: &Caller,
        message: SupervisorToDispatcher,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.messages.received += 1;
        match message {
            SupervisorToDispatcher::Hello(hello) => return self.greet(peer, &hello, now_ms),
            SupervisorToDispatcher::Heartbeat(beat) => self.answer_heartbeat(peer, &beat, now_ms),
            SupervisorToDispatcher::Credit { session, credit } => {
                self.dispatch.credit(peer, session, credit, now_ms);
            }
            SupervisorToDispatcher::Goodbye {
                session,
                outcomes_sent,
            } => {
                self.dispatch.goodbye(peer, session, outcomes_sent, now_ms);
                return self.remove_gone_supervisors(now_ms);
            }
            SupervisorToDispatcher::AskMappings { session, mappings } => {
                self.give_mappings(peer, session, &mappings);
            }
            SupervisorToDispatcher::Report(report) => {
                self.dispatch.note_report(peer, report, now_ms);
            }
        }
        Ok(())
    }

    /// Where a supervisor that has said hello calls from.
    pub fn note_address_of(&mut self, peer: &Caller, address: String) {
        self.dispatch.note_address_of(peer, address);
    }

    fn greet(&mut self, peer: &Caller, hello: &Hello, now_ms: i64) -> Result<(), FrontierError> {
        if self.quiet_s(now_ms) > 0 {
            // An answer would prolong its lease, and it may hold tasks of the former dispatcher.
            return Ok(());
        }
        match self.dispatch.greet(hello) {
            Greeting::Joins => self.welcome(peer, hello, now_ms),
            Greeting::Outdated => Ok(()),
            Greeting::NameTaken => {
                let refusal = format!("name taken {}", hello.supervisor);
                if self.refusals.record_if_new(&refusal) {
                    tracing::warn!(
                        event = "name_taken",
                        supervisor = hello.supervisor,
                        "a second supervisor of this name must wait until the first is gone"
                    );
                }
                let session = hello.session;
                self.send_to_supervisor(peer, DispatcherToSupervisor::NameTaken { session });
                Ok(())
            }
        }
    }

    fn welcome(&mut self, peer: &Caller, hello: &Hello, now_ms: i64) -> Result<(), FrontierError> {
        tracing::info!(
            event = "supervisor_joined",
            supervisor = hello.supervisor,
            version = peer.version,
            lane = hello.lane.as_str(),
            workers = hello.workers,
            held = hello.held.len(),
            "supervisor joined"
        );
        self.frontier.save_supervisor(&SavedSupervisor {
            name: hello.supervisor.clone(),
            instance: hello.instance,
            longest_request_ms: hello.longest_request_ms,
            silent_ms: 0,
        })?;
        let lost = self.dispatch.join(hello, peer.clone(), now_ms);
        self.take_back(lost, now_ms)?;
        self.update_browser_lane();
        let welcome = DispatcherToSupervisor::Welcome {
            session: hello.session,
            heard_ms: hello.sent_ms,
            lease_ms: self.settings.lease_ms,
            mappings: self.mappings.version.clone(),
        };
        self.send_to_supervisor(peer, welcome);
        self.resend_recalls(&hello.supervisor);
        if self.draining {
            self.dispatch.drain();
            self.send_to_supervisor(peer, DispatcherToSupervisor::Drain);
        } else if self.drains.concern(&hello.supervisor) {
            self.tell_to_drain(&hello.supervisor);
        }
        Ok(())
    }

    /// A supervisor lacks a set of mappings. If it is not in force any more, the supervisor is about to
    /// hear of its successor.
    fn give_mappings(&mut self, peer: &Caller, session: u64, wanted: &MappingsVersion) {
        if !self.dispatch.is_in_session(peer, session) {
            self.send_to_supervisor(peer, DispatcherToSupervisor::SayHello { session });
        } else if *wanted == self.mappings.version {
            let Mappings { version, sources } = self.mappings.clone();
            let message = DispatcherToSupervisor::Mappings {
                session,
                version,
                sources,
            };
            self.send_to_supervisor(peer, message);
        }
    }

    fn answer_heartbeat(&mut self, peer: &Caller, beat: &SupervisorHeartbeat, now_ms: i64) {
        let session = beat.session;
        let ahead_ms = self.dispatch.clock_ahead_ms_of(peer);
        let answer = match self.dispatch.heartbeat(peer, beat, now_ms) {
            HeartbeatReply::InSync {
                heard_ms,
                outcomes_heard,
            } => {
                self.extend_recall_deadlines(peer, beat.received);
                self.watch_clock(peer, ahead_ms);
                DispatcherToSupervisor::Heartbeat {
                    session,
                    heard_ms,
                    outcomes_heard,
                }
            }
            HeartbeatReply::OutOfSync => DispatcherToSupervisor::SayHello { session },
        };
        self.send_to_supervisor(peer, answer);
    }

    /// Tells the frontier whether a supervisor of the lane `browser` is connected.
    fn update_browser_lane(&mut self) {
        let browsers = self.dispatch.has_lane(Lane::Browser);
        self.frontier.set_browsers(browsers);
    }

    /// After a start: restores the leases of the frontier's last commit.
    pub(super) fn restore_leases(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        let supervisors = self.frontier.supervisors()?;
        let sites = self.frontier.leased_sites()?;
        let leases = self.frontier.leases()?;
        let ownerless = self.dispatch.restore(supervisors, sites, leases, now_ms);
        self.take_back(ownerless, now_ms)
    }

    /// Takes back leases that their supervisor does not hold any more, or whose supervisor is lost.
    fn take_back(
        &mut self,
        leases: Vec<(TaskId, Lease)>,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        for (task, lease) in leases {
            let returned = TaskReturned {
                task,
                delivery: lease.delivery,
                cause: ReturnCause::WorkerDied,
                clock: None,
                address: None,
            };
            self.take_returned(returned, now_ms)?;
        }
        Ok(())
    }

    pub(super) fn remove_gone_supervisors(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        for name in self.dispatch.left_supervisors(now_ms) {
            tracing::info!(
                event = "supervisor_left",
                supervisor = name,
                "supervisor left"
            );
            self.remove_supervisor(&name, Gone::Left, now_ms)?;
        }
        for name in self.dispatch.lost_supervisors(now_ms) {
            self.counters.supervisors_lost += 1;
            tracing::error!(
                event = "supervisor_lost",
                supervisor = name,
                "a supervisor is lost, its tasks go to others"
            );
            self.remove_supervisor(&name, Gone::Lost, now_ms)?;
        }
        Ok(())
    }

    /// Supervisors that fall silent are told of before they are lost. Their sites that have no task with
    /// them get other owners now; the others' requests may still be under way.
    pub(super) fn tell_silent_supervisors(&mut self, now_ms: i64) {
        for (name, lost_ms) in self.dispatch.fall_silent(now_ms) {
            tracing::warn!(
                event = "supervisor_silent",
                supervisor = name,
                sites = self.dispatch.sites_of(&name),
                leased = self.dispatch.leased_to(&name),
                lost_in_s = (lost_ms - now_ms) / 1_000,
                "a supervisor is not heard of: its idle sites go to others now, the tasks that it holds when it is lost"
            );
            self.next_site_ms = Some(now_ms);
        }
    }

    /// Stores for how long supervisors from before the start are silent, so that a dispatcher that
    /// is restarted often still finds them lost.
    pub(super) fn note_silences(&mut self, now_ms: i64) -> Result<(), FrontierError> {
        for (name, silent_ms) in self.dispatch.silences(now_ms) {
            self.frontier.note_silence(&name, silent_ms)?;
        }
        Ok(())
    }

    fn remove_supervisor(
        &mut self,
        name: &str,
        gone: Gone,
        now_ms: i64,
    ) -> Result<(), FrontierError> {
        self.note_drained(name, gone);
        self.release_recalls_awaiting(name);
        let leases = self.dispatch.remove_supervisor(name);
        self.take_back(leases, now_ms)?;
        self.update_browser_lane();
        self.frontier.forget_supervisor(name)
    }
}
