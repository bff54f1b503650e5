//! The messages between dispatchers. Any of them may be lost, late, repeated or out of order.

/// A crawl, by its index in the plan.
pub(super) type CrawlNumber = usize;

/// A link to a site of the receiver.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Link {
    pub(super) crawl: CrawlNumber,
    pub(super) url: String,
    pub(super) depth: u16,
}

#[derive(Debug, Clone)]
pub(super) enum Message {
    /// Links, in the order of the outbox. The links for each receiver are numbered from 1.
    Links { first: u64, links: Vec<Link> },
    /// Confirms that all links up to this number are committed.
    Taken { up_to: u64 },
    /// The current state of a crawl. Of two versions the greater one is valid.
    Crawl {
        crawl: CrawlNumber,
        version: u64,
        stopped: bool,
    },
    /// Confirms that the version is carried out: if it is a stop, nothing of the crawl starts here any more.
    CrawlTaken { crawl: CrawlNumber, version: u64 },
    /// Asks for a crawl that is not known here, though links of it have arrived.
    CrawlWanted { crawl: CrawlNumber },
    /// Asks for a share. Such requests are numbered. Before it asks, the sender has given up all pages of its share
    /// beyond `kept`. It would like `more` pages.
    ShareWanted {
        crawl: CrawlNumber,
        request: u64,
        kept: u64,
        more: u64,
    },
    /// The receiver's share of the crawl's page limit, in answer to the request with this number.
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

/// The counts of a dispatcher for a crawl, all of them committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) queued: u64,
    pub(super) leased: u64,
    pub(super) pages: u64,
    /// The number of links ever added to its outbox.
    pub(super) sent: u64,
    /// The number of links ever taken from others.
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

    /// Whether no dispatcher has anything to do: nothing is leased, and either nothing is queued or the page limit is
    /// used up.
    pub(super) fn are_quiet(&self, most_pages: Option<u64>) -> bool {
        let is_used_up = most_pages.is_some_and(|most| self.pages >= most);
        self.leased == 0 && (self.queued == 0 || is_used_up)
    }

    /// Whether links are in transit.
    pub(super) fn have_links_under_way(&self) -> bool {
        self.sent != self.taken
    }
}
