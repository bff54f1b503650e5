//! What dispatchers say to each other. Any of it may be lost, late, repeated and out of order.

/// A crawl, by its place in the plan.
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
    /// Links in the order of the outbox, in which they have running numbers from 1 on for each
    /// receiver.
    Links { first: u64, links: Vec<Link> },
    /// All links up to this number are committed.
    Taken { up_to: u64 },
    /// What is in force for a crawl. Of two versions the greater one counts.
    Crawl {
        crawl: CrawlNumber,
        version: u64,
        stopped: bool,
    },
    /// The version is carried out: if it is a stop, nothing of the crawl starts here any more.
    CrawlTaken { crawl: CrawlNumber, version: u64 },
    /// Links of the crawl have come, and it is not known here.
    CrawlWanted { crawl: CrawlNumber },
    /// Requests for shares are numbered. The sender has given up all pages of its share beyond
    /// `kept` before it asked, and would like this many `more`.
    ShareWanted {
        crawl: CrawlNumber,
        request: u64,
        kept: u64,
        more: u64,
    },
    /// The receiver's share of the crawl's page limit, in answer to this request.
    Share {
        crawl: CrawlNumber,
        request: u64,
        pages: u64,
    },
    /// A wave asks all dispatchers for their counts.
    CountsWanted { crawl: CrawlNumber, wave: u64 },
    Counts {
        crawl: CrawlNumber,
        wave: u64,
        counts: Counts,
    },
}

/// What a dispatcher counts of a crawl; all of it is committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) queued: u64,
    pub(super) leased: u64,
    pub(super) pages: u64,
    /// Links that were put into its outbox, ever.
    pub(super) sent: u64,
    /// Links that it has taken from others, ever.
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

    /// Whether nobody has anything to do: nothing is leased, and nothing queued or the page limit used
    /// up.
    pub(super) fn are_quiet(&self, most_pages: Option<u64>) -> bool {
        let is_used_up = most_pages.is_some_and(|most| self.pages >= most);
        self.leased == 0 && (self.queued == 0 || is_used_up)
    }

    /// Whether links are under way.
    pub(super) fn have_links_under_way(&self) -> bool {
        self.sent != self.taken
    }
}
