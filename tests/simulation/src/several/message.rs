//! The messages between dispatchers. Any of them may be lost, late, repeated or out of order.

/// A crawl, by its index in the plan.
pub(super) type CrawlNumber = usize;

/// A link to a site that belongs to the receiver.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Link {
    pub(super) crawl: CrawlNumber,
    pub(super) url: String,
    pub(super) depth: u16,
}

#[derive(Debug, Clone)]
pub(super) enum Message {
    /// Links in the order of the sender's outbox. The links for each receiver are numbered from 1; `first` is the
    /// number of the first link here.
    Links { first: u64, links: Vec<Link> },
    /// Confirms that all links up to this number are committed.
    Taken { up_to: u64 },
    /// The current state of a crawl. If two versions arrive, the greater one is valid.
    Crawl {
        crawl: CrawlNumber,
        version: u64,
        stopped: bool,
    },
    /// Confirms that a version was carried out. If it is a stop, no task of the crawl starts at the sender any more.
    CrawlTaken { crawl: CrawlNumber, version: u64 },
    /// Asks for the state of a crawl that the sender does not know, although links of this crawl have arrived.
    CrawlWanted { crawl: CrawlNumber },
    /// Asks for a share of a crawl's page limit. `request` numbers the questions. Before sending, the sender has given
    /// up all pages of its share beyond `kept`. It would like `more` pages.
    ShareWanted {
        crawl: CrawlNumber,
        request: u64,
        kept: u64,
        more: u64,
    },
    /// Answers the request for a share with this number: the receiver's share of the crawl's page limit.
    Share {
        crawl: CrawlNumber,
        request: u64,
        pages: u64,
    },
    /// Asks for the receiver's counts. In a wave, all dispatchers are asked.
    CountsWanted { crawl: CrawlNumber, wave: u64 },
    Counts {
        crawl: CrawlNumber,
        wave: u64,
        counts: Counts,
    },
}

/// The committed counts of a dispatcher for a crawl.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) queued: u64,
    pub(super) leased: u64,
    pub(super) pages: u64,
    /// The number of all links that were ever added to the dispatcher's outbox.
    pub(super) sent: u64,
    /// The number of all links that the dispatcher has ever accepted from other dispatchers.
    pub(super) taken: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Counts) {
        self.queued += other.queued;
        self.leased += other.leased;
        self.pages += other.pages;
        self.sent += other.sent;
        self.taken += other.taken;
    }

    /// Whether nothing is left to do: no task is leased, and either none is queued or the page limit is used up.
    pub(super) fn are_quiet(&self, most_pages: Option<u64>) -> bool {
        let is_used_up = most_pages.is_some_and(|most| self.pages >= most);
        self.leased == 0 && (self.queued == 0 || is_used_up)
    }

    /// Whether links are in transit between dispatchers.
    pub(super) fn have_links_under_way(&self) -> bool {
        self.sent != self.taken
    }
}
