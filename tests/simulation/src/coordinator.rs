//! The simulated dispatcher process: the real dispatcher code and its real database, with a clock that faults can set.
//! The events of the process are in [`turns`](crate::turns).

use webfill_scheduler::frontier::{Frontier, FrontierConfig};
use webfill_scheduler::{Core, CoreSettings, Mappings};
use webfill_wire::Lane;

use crate::settings::EPOCH_MS;
use crate::witness::DatabaseObserver;

pub(crate) struct Coordinator {
    folder: tempfile::TempDir,
    pub(crate) dispatcher: Option<Core>,
    /// The number of times that the dispatcher has been started.
    pub(crate) life: u32,
    /// The difference between the machine's wall clock and the true time, in milliseconds.
    pub(crate) clock_ahead_ms: i64,
    /// The difference between the dispatcher's clock and the true time, in milliseconds.
    ahead_ms: i64,
    pub(crate) wakes_at_ms: u64,
    pub(crate) turns: u64,
    pub(crate) deaths_in_turn: u64,
    witness: Option<DatabaseObserver>,
}

impl Coordinator {
    pub(crate) fn new() -> Coordinator {
        // The database is in memory if possible, because the disk is not under test here.
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        Coordinator {
            folder: folder.expect("a temporary folder"),
            dispatcher: None,
            life: 0,
            clock_ahead_ms: 0,
            ahead_ms: 0,
            wakes_at_ms: 0,
            turns: 0,
            deaths_in_turn: 0,
            witness: None,
        }
    }

    /// The folder of the dispatcher's database, which the witness (the checker) also reads.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.dispatcher.is_some()
    }

    pub(crate) fn open(&mut self, terms: CoreSettings, mut config: FrontierConfig, true_ms: u64) {
        self.life += 1;
        self.ahead_ms = EPOCH_MS + self.clock_ahead_ms;
        self.wakes_at_ms = 0;
        let now_ms = self.ahead_ms + true_ms as i64;
        config.seen_memory_bytes = 1 << 20;
        config.page_cache_bytes = 2 << 20;
        let frontier = Frontier::open(self.folder.path(), config, now_ms).expect("it opens");
        let dispatcher = Core::open(frontier, terms, Mappings::default(), now_ms);
        self.dispatcher = Some(dispatcher.expect("it continues"));
    }

    pub(crate) fn restore_fault_of_unreachable_turns(&mut self) {
        if let Some(dispatcher) = &mut self.dispatcher {
            dispatcher
                .frontier()
                .site_states()
                .restore_fault_of_unreachable_turns();
        }
    }

    /// The lanes of the connected supervisors: `http`, or `browser` for those with browsers. Empty as long as a
    /// supervisor lacks credit (free places for tasks), or a lost one may come back.
    pub(crate) fn lanes_with_credit(&self, now_ms: i64) -> Vec<Lane> {
        let dispatcher = self.dispatcher.as_ref();
        dispatcher.map_or(Vec::new(), |dispatcher| {
            dispatcher.lanes_with_credit(now_ms)
        })
    }

    /// The difference between the dispatcher's clock and the true time, in milliseconds.
    pub(crate) fn ahead_ms(&self) -> i64 {
        self.ahead_ms
    }

    /// The wall clock of the dispatcher's machine at this true time.
    pub(crate) fn wall_ms(&self, true_ms: u64) -> i64 {
        EPOCH_MS + self.clock_ahead_ms + true_ms as i64
    }

    /// The witness's own connection to the database, like that of another program.
    pub(crate) fn open_witness(&mut self) -> &mut DatabaseObserver {
        let folder = self.folder.path();
        self.witness
            .get_or_insert_with(|| DatabaseObserver::open(folder))
    }
}
