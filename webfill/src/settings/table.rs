//! Every setting: its key, the kind and bounds of its value, and its meaning. The environment variables, the checks
//! of `limits`, `docs/reference/settings.md` and `deploy/webfill.toml` are derived from this table.

use webfill_urls::MAX_URL_BYTES;

/// A setting of `webfill.toml`. Its environment variable is `WEBFILL_` and the key in capitals.
#[derive(Debug)]
pub struct Setting {
    /// The path of the setting in the file.
    pub key: &'static str,
    pub kind: Kind,
    /// The meaning of the setting, as Markdown with links relative to `docs/reference/`.
    pub meaning: &'static str,
    /// Only for a setting without a default: an example value in TOML, and a description of what applies if it is
    /// unset.
    pub unset: Option<(&'static str, &'static str)>,
}

/// The kind of a value, and its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Text,
    Whole(u64, u64),
    /// A number without bounds in this table. The `check` function of its struct checks it.
    Number,
    /// A number of seconds from 0 to a year.
    Wait,
    /// A number of seconds greater than 0, at most a day.
    Timeout,
    Switch,
    /// A list of texts. In an environment variable, commas separate them.
    List,
    /// A list of texts that may contain commas. In an environment variable, each is on its own line.
    Lines,
    /// A list of seconds: the wait before each further attempt.
    Waits,
}

/// The settings of one section of the file.
#[derive(Debug)]
pub struct Section {
    /// The name of the section; empty for the keys before the first section.
    pub name: &'static str,
    pub title: &'static str,
    /// A note about the whole section.
    pub note: &'static str,
}

const MAX_DAYS: u64 = 100 * 365;

const fn section(name: &'static str, title: &'static str, note: &'static str) -> Section {
    Section { name, title, note }
}

pub const SECTIONS: &[Section] = &[
    section("", "Data", ""),
    section("dispatcher", "Dispatcher", ""),
    section(
        "watches",
        "What the watches of a fleet may read",
        "See [watches.md](../how-to/watches.md#in-a-fleet).",
    ),
    section(
        "notifications",
        "Notifications of watches",
        "See [notifications.md](../how-to/notifications.md#permissions).",
    ),
    section(
        "metrics",
        "Metrics for Prometheus",
        "See [metrics.md](metrics.md).",
    ),
    section(
        "probes",
        "Health probes",
        "They need no token. See [operate.md](../how-to/operate.md#probes).",
    ),
    section("supervisor", "Supervisor", ""),
    section("worker", "Workers", ""),
    section("politeness", "Politeness", ""),
    section("fetch", "Fetching", ""),
    section(
        "archive",
        "WARC archive",
        "See [archive.md](../how-to/archive.md).",
    ),
    section(
        "documents",
        "Documents",
        "See [documents.md](../how-to/documents.md).",
    ),
    section(
        "bodies",
        "Page bodies",
        "Of crawls with `--keep-bodies`. See [extract.md](../how-to/extract.md#kept-bodies).",
    ),
    section(
        "browser",
        "Browser",
        "For the lane `browser`, and for pages that need it. See [browser.md](../how-to/browser.md).",
    ),
    section(
        "retries",
        "Retries",
        "Waits before each further attempt of a page, in seconds, if the failure is not its [site's](data.md#sites-that-back-off). \
         With an empty list the first failure is final. \
         [`--patience`](data.md#dead-sites-and-the-end-of-a-crawl) shortens the waits, and so does `patience` of a watch.",
    ),
    section(
        "backoff",
        "Backoff of sites in trouble",
        "How long [a site backs off](data.md#sites-that-back-off), in seconds: first, after the next failure, and so on. \
         With an empty list sites never back off for this reason, and the failure ends the task.",
    ),
    section(
        "applications",
        "Limits of applications",
        "A section for each application, `[applications.NAME]`; only in the file, not as a variable. All keys are optional.",
    ),
    section(
        "retention",
        "Retention",
        "See [operate.md](../how-to/operate.md#how-long-pages-are-kept).",
    ),
    section("disk", "Disks", ""),
    section("log", "Logs", ""),
];

const fn setting(key: &'static str, kind: Kind, meaning: &'static str) -> Setting {
    Setting {
        key,
        kind,
        meaning,
        unset: None,
    }
}

/// Describes a setting without a default.
const fn setting_without_default(
    key: &'static str,
    kind: Kind,
    meaning: &'static str,
    example: &'static str,
    without: &'static str,
) -> Setting {
    Setting {
        key,
        kind,
        meaning,
        unset: Some((example, without)),
    }
}

use Kind::{Lines, List, Number, Switch, Text, Timeout, Wait, Waits, Whole};

pub const SETTINGS: &[Setting] = &[
    setting(
        "store",
        Text,
        "Store of records, pages and crawls: `sqlite:FILE`, or `mongodb://...` ([mongodb.md](../how-to/mongodb.md)). If it holds a password, let only the owner read the settings file.",
    ),
    setting_without_default(
        "cache",
        Text,
        "Cache of robots.txt files and site clocks, in the same form.",
        "\"sqlite:cache.db\"",
        "the store",
    ),
    setting_without_default(
        "dataset",
        Text,
        "Dataset of the records of `webfill crawl`. Ids are unique within a dataset.",
        "\"people\"",
        "the name of the seeds file or collection, or `stdin`",
    ),
    setting_without_default(
        "list_separator",
        Text,
        "Separator of list values in a cell of CSV seeds, as `--list-separator` of `webfill crawl`; in a fleet, for the seeds of its watches.",
        "\";\"",
        "a cell is one text",
    ),
    setting(
        "state",
        Text,
        "State folder: the dispatcher's files, sockets and logs.",
    ),
    setting("mappings", Text, "Folder of mapping files."),
    setting_without_default(
        "keys",
        Text,
        "Folder of keys ([security.md](../explanation/security.md)).",
        "\"keys\"",
        "webfill communicates within this machine only",
    ),
    setting(
        "dispatcher.listen",
        Text,
        "Host name or address to listen on. Anything but loopback needs keys.",
    ),
    // The highest allowed port leaves room for three more, because the dispatcher uses the next three ports, too.
    setting(
        "dispatcher.port",
        Whole(1, 65_532),
        "Port of the tasks socket; outcomes, control and firehose use the next three.",
    ),
    setting(
        "dispatcher.http",
        Text,
        "Address for HTTP requests, `ADDRESS:PORT` or `off`; beyond loopback only [with TLS and tokens](../explanation/security.md#requests-by-http).",
    ),
    setting_without_default(
        "dispatcher.http_certificate",
        Text,
        "PEM file of the certificate for HTTP, and of its intermediates.",
        "\"/etc/webfill/http.pem\"",
        "plain HTTP",
    ),
    setting_without_default(
        "dispatcher.http_key",
        Text,
        "PEM file of the certificate's key. Only its owner may be able to read it.",
        "\"/etc/webfill/http.key\"",
        "plain HTTP",
    ),
    setting_without_default(
        "dispatcher.http_tokens",
        Text,
        "File of the tokens that HTTP requests need. Only its owner may be able to read it.",
        "\"/etc/webfill/tokens\"",
        "no request needs a token",
    ),
    setting(
        "dispatcher.window_sites",
        Whole(1, 100_000_000),
        "Sites held in memory at once. The others wait on disk.",
    ),
    setting(
        "dispatcher.seen_memory_mib",
        Whole(1, 1 << 20),
        "Memory for the keys of seen URLs, in MiB. Pages of `dispatcher.db` get a quarter as much, and at least 16 MiB.",
    ),
    setting(
        "dispatcher.lease",
        Timeout,
        "How long a supervisor may start fetches after its last message to the dispatcher. Stops and pauses wait this long for a supervisor that does not answer.",
    ),
    setting_without_default(
        "dispatcher.exclude_sites",
        Text,
        "File of domains that are never crawled, `FILE` or `FILE:N` for its first N: one domain or `rank,domain` per line; may be .gz or .zip. URLs that are queued already end in `stopped`.",
        "\"top-sites.csv:1000\"",
        "none are excluded",
    ),
    setting(
        "dispatcher.restored",
        Switch,
        "Start from a restored backup in the state folder: wait until requests of the earlier fleet have ended. As `--restored`, for units with a fixed command. Other files are opened as usual ([operate.md](../how-to/operate.md#starting-from-a-backup)).",
    ),
    setting_without_default(
        "dispatcher.patience",
        Wait,
        "How long to wait for dead and failing sites before their URLs fail, as [`--patience`](data.md#dead-sites-and-the-end-of-a-crawl) of `webfill crawl`.",
        "120.0",
        "120 seconds in `webfill crawl`; in a fleet as long as `retries` and `backoff` say",
    ),
    setting(
        "dispatcher.drop_parameters",
        List,
        "Query parameters that do not change a page: names, or beginnings of names with `*`. A crawl fetches only one of the URLs that differ only in these, as found.",
    ),
    setting(
        "dispatcher.journal",
        Switch,
        "Keep a journal of the dispatcher in the store, so that another dispatcher with the same setting and store can take over ([operate.md](../how-to/operate.md#a-second-dispatcher)). Needs a store in MongoDB.",
    ),
    setting(
        "dispatcher.journal_mib",
        Whole(1, 1 << 20),
        "How much of the journal is kept, in MiB; more only until [a snapshot](../how-to/operate.md#a-second-dispatcher) has it. A dispatcher that stands by and has missed more begins again with the snapshot.",
    ),
    setting_without_default(
        "watches.seeds_dir",
        Text,
        "Folder of the files that watches may read as `seeds`.",
        "\"/srv/webfill/seeds\"",
        "they may read no files",
    ),
    setting(
        "watches.records",
        List,
        "Databases that watches may read as `records`: `mongodb://HOST[:PORT]/DATABASE`, or `store` for that of the store.",
    ),
    setting_without_default(
        "notifications.smtp",
        Text,
        "Mail server: `smtp://HOST[:PORT]` (STARTTLS), `smtps://HOST[:PORT]` or `plain://127.0.0.1[:PORT]`.",
        "\"smtp://mx.b.example\"",
        "no mail is sent",
    ),
    setting_without_default(
        "notifications.smtp_user",
        Text,
        "User name at the mail server.",
        "\"webfill\"",
        "no login",
    ),
    setting_without_default(
        "notifications.smtp_password_file",
        Text,
        "File with the user's password.",
        "\"/etc/webfill/smtp.password\"",
        "no login",
    ),
    setting_without_default(
        "notifications.mail_from",
        Text,
        "Sender of mail.",
        "\"webfill@b.example\"",
        "mail needs one",
    ),
    setting(
        "notifications.mail_to",
        List,
        "Addresses that watches may write to, or `@DOMAIN` for all of a domain.",
    ),
    setting(
        "notifications.commands",
        List,
        "Programs that watches may run: the full path of one without arguments, or a list of the path and all of its arguments, such as `[\"/usr/local/bin/page\", \"--team\", \"data\"]`.",
    ),
    setting_without_default(
        "notifications.files_dir",
        Text,
        "Folder of the files that watches may append to.",
        "\"/srv/webfill/notifications\"",
        "they may append to none",
    ),
    setting_without_default(
        "notifications.secrets_dir",
        Text,
        "Folder of the keys that watches may sign with, each in a folder named after its host, such as `hooks.example`.",
        "\"/etc/webfill/hooks\"",
        "they may sign nothing",
    ),
    setting(
        "notifications.allow_private_webhooks",
        Switch,
        "Allow watches to post to private addresses.",
    ),
    setting_without_default(
        "notifications.ca_file",
        Text,
        "PEM file of certificate authorities to trust in addition to the system's.",
        "\"/etc/webfill/ca.pem\"",
        "those of the system",
    ),
    setting(
        "notifications.undelivered_after",
        Number,
        "Time after which an unreached recipient raises an alert: 1 to 86400 seconds.",
    ),
    setting(
        "metrics.dispatcher",
        Text,
        "Where the dispatcher serves metrics: `ADDRESS:PORT` on loopback, or `off`.",
    ),
    setting(
        "metrics.supervisor",
        Text,
        "Where a supervisor serves metrics of itself and its workers.",
    ),
    setting(
        "metrics.allow_network",
        Switch,
        "Allow addresses that other machines can reach. Anyone who reaches them can read the metrics.",
    ),
    setting(
        "probes.dispatcher",
        Text,
        "Where the dispatcher answers `GET /healthz` and `GET /readyz`: `ADDRESS:PORT` on loopback, or `off`.",
    ),
    setting(
        "probes.supervisor",
        Text,
        "Where a supervisor answers them.",
    ),
    setting(
        "probes.allow_network",
        Switch,
        "Allow addresses that other machines can reach. There the answers give no reason.",
    ),
    setting(
        "supervisor.dispatcher",
        Text,
        "Address of the dispatcher's tasks socket. Outcomes go to the next port. The addresses of several dispatchers, [of which one serves](../how-to/operate.md#a-second-dispatcher), are separated by commas.",
    ),
    setting_without_default(
        "supervisor.id",
        Text,
        "Name of this supervisor, unique in the fleet.",
        "\"vm-01\"",
        "the host name",
    ),
    setting(
        "supervisor.lane",
        Text,
        "`http`, or `browser` for workers that run the scripts of pages in Chromium, for crawls that need it.",
    ),
    setting(
        "supervisor.workers",
        Whole(0, 999),
        "Worker processes. 0: one per core; in the lane `browser`, one.",
    ),
    setting(
        "supervisor.queue",
        Whole(0, u32::MAX as u64),
        "Maximum number of tasks held, plus up to 512 for each worker that wait for a name server. 0: four for each possible concurrent fetch or browser tab.",
    ),
    // The lower bound must leave room for the longest URL, which could otherwise never be sent.
    setting(
        "supervisor.queue_url_bytes",
        Whole(MAX_URL_BYTES as u64, 1 << 40),
        "Maximum bytes of URLs held.",
    ),
    setting(
        "worker.concurrency",
        Whole(1, 10_000),
        "Concurrent fetches per worker.",
    ),
    // The lower bound is 32 MiB, because many real pages would be truncated with less.
    setting(
        "worker.memory_mib",
        Whole(32, 1 << 20),
        "Memory of each worker for pages in flight, in MiB: a quarter for bodies, half for the page being read, a quarter for unsaved results. Fetches wait for memory. A page that needs more is cut off ([operate.md](../how-to/operate.md#memory)).",
    ),
    setting(
        "worker.page_deadline",
        Timeout,
        "Maximum time for the extraction of one page.",
    ),
    setting(
        "politeness.delay",
        Wait,
        "Time between two requests to a site without a `Crawl-delay` in its robots.txt.",
    ),
    setting(
        "politeness.max_delay",
        Wait,
        "Maximum wait that a server can demand (`Crawl-delay`, `Retry-After`). Longer ones are cut to this; nothing is dropped.",
    ),
    setting_without_default(
        "politeness.address_delay",
        Wait,
        "Time between the starts of two requests to one address, or to all sites of one provider (those below a private suffix of the public suffix list, such as github.io), over all workers and machines.",
        "1.0",
        "0.2 seconds and 8 requests for public addresses and providers. If this or `politeness.address_in_flight` is set, they hold for loopback and private addresses, too",
    ),
    setting_without_default(
        "politeness.address_in_flight",
        Whole(1, 1_000_000),
        "Maximum number of concurrent requests to one address or provider.",
        "4",
        "as above",
    ),
    setting_without_default(
        "politeness.contact",
        Text,
        "URL of a page that explains the crawl, sent in the user agent. Required for public addresses. [deploy/crawler-page.html](../../deploy/crawler-page.html) is a template.",
        "\"https://example.org/crawler.html\"",
        "public addresses are refused",
    ),
    setting(
        "politeness.useragent_replaces_name",
        Switch,
        "The `useragent` of a crawl request replaces `webfill/VERSION` in the user agent instead of following it. The contact is sent in either case.",
    ),
    setting(
        "politeness.ignore_robots",
        Switch,
        "Skip the robots.txt of loopback and private addresses.",
    ),
    setting(
        "politeness.allow_private_networks",
        Switch,
        "Allow loopback, private and link-local addresses.",
    ),
    setting(
        "politeness.adaptive",
        Switch,
        "After a slow answer, leave the site alone for at least as long as the answer took to begin.",
    ),
    setting(
        "politeness.clock",
        Text,
        "Place of a site's clock: `owner`, in the worker with the site's tasks; or `shared`, in the cache, where each request reserves the next start. Independent crawls with one cache need `shared`.",
    ),
    setting(
        "fetch.lookup_timeout",
        Timeout,
        "Maximum time for a name lookup, which happens before a request takes one of the concurrent fetches.",
    ),
    setting(
        "fetch.connect_timeout",
        Timeout,
        "Maximum time for connect and TLS handshake together.",
    ),
    setting(
        "fetch.head_timeout",
        Timeout,
        "Maximum time until the response head has arrived.",
    ),
    setting(
        "fetch.body_timeout",
        Timeout,
        "Maximum pause between two pieces of a body.",
    ),
    setting(
        "fetch.total_timeout",
        Timeout,
        "Maximum time for the whole request.",
    ),
    setting(
        "fetch.max_body_bytes",
        Whole(1, 1 << 40),
        "Maximum size of a body, in bytes after decompression.",
    ),
    setting_without_default(
        "fetch.proxy",
        Text,
        "HTTP(S) or SOCKS5 proxy for all fetches. Proxy variables of the environment are ignored.",
        "\"http://proxy.example.org:3128\"",
        "no proxy",
    ),
    setting(
        "fetch.resolve",
        List,
        "List of `HOST:PORT:ADDR[:PORT]`, as curl's `--resolve`; `*` matches every host.",
    ),
    setting_without_default(
        "fetch.ca_file",
        Text,
        "PEM file of certificate authorities to trust in addition to the system's.",
        "\"ca.pem\"",
        "those of the system",
    ),
    setting(
        "fetch.headers",
        Lines,
        "Request headers for the pages of a site and its subdomains, without robots.txt: `SITE NAME: VALUE`, such as `\"shop.example Accept-Language: de\"`; `*` is every site; the longest site wins. Allowed: `Accept`, `Accept-Language`, `DNT`, `Save-Data`, `Sec-GPC`, `X-Requested-With`. The `headers` of a [mapping](../../etl-mappings/README.md#keys) override it.",
    ),
    setting_without_default(
        "archive.warc",
        Text,
        "Folder for WARC files of all fetches.",
        "\"warc\"",
        "nothing is archived",
    ),
    setting(
        "archive.warc_mib",
        Whole(1, 1 << 20),
        "Size at which a WARC file is complete, in MiB.",
    ),
    setting(
        "documents.read",
        Switch,
        "Read documents as pages: PDF, DOCX, XLSX, XLS, ODT, ODS, RTF, plain text.",
    ),
    setting_without_default(
        "documents.keep",
        Text,
        "Folder for the original files of documents, named by their SHA-256. Implies `documents.read`.",
        "\"documents\"",
        "none are kept",
    ),
    setting(
        "documents.readers",
        Whole(1, 1_000),
        "Documents that a worker reads at the same time, each in its own process.",
    ),
    setting(
        "documents.deadline",
        Timeout,
        "CPU time for one document; three times as much by the clock.",
    ),
    // The lower bound is 64 MiB, because many real documents could not be read with less.
    setting(
        "documents.memory_mib",
        Whole(64, 1 << 20),
        "Memory for one document, in MiB.",
    ),
    setting(
        "bodies.max_mib",
        Whole(1, 1 << 30),
        "Maximum size of all page bodies in the store, compressed, in MiB. The oldest are dropped.",
    ),
    setting(
        "bodies.max_body_mib",
        Whole(1, 1 << 10),
        "Maximum size of one page body before compression, in MiB. Larger ones are not kept.",
    ),
    setting(
        "browser.command",
        Text,
        "Chromium or a browser based on it: a program in the `PATH`, or a file.",
    ),
    setting(
        "browser.sandbox",
        Switch,
        "Use Chromium's sandbox, which does not work for root.",
    ),
    setting(
        "browser.tabs",
        Whole(1, 1_000),
        "Pages rendered at once per worker.",
    ),
    setting(
        "browser.settle",
        Timeout,
        "Time after which a page is read, by its virtual clock, which stands still while a request waits for its answer.",
    ),
    setting(
        "browser.page_deadline",
        Timeout,
        "Maximum time that the scripts of a page may run without a request.",
    ),
    setting(
        "browser.max_requests",
        Whole(0, 10_000),
        "Maximum number of scripts and data requests of one page.",
    ),
    setting(
        "browser.memory_mib",
        Whole(256, 1 << 20),
        "Memory limit of each browser process, in MiB. A quarter is for the JavaScript heap of a page.",
    ),
    setting(
        "browser.pages",
        Whole(1, 1_000_000),
        "Number of pages after which a browser is restarted, because its memory grows.",
    ),
    setting(
        "browser.auto",
        Switch,
        "In crawls of the lane `http`, try pages that are empty without their scripts [in the browser](../how-to/browser.md#only-where-it-is-needed).",
    ),
    setting(
        "browser.sites",
        List,
        "Sites (registrable domains) whose pages are always read after their scripts have run, in every lane.",
    ),
    setting(
        "browser.not_sites",
        List,
        "Sites whose pages are never rendered in crawls of the lane `http`.",
    ),
    setting("retries.timeout", Waits, "After a timeout or a 408."),
    setting(
        "retries.network_error",
        Waits,
        "After a connection that was refused or broke.",
    ),
    setting(
        "retries.dns_error",
        Waits,
        "After a name that does not resolve.",
    ),
    setting("retries.tls_error", Waits, "After a failed TLS handshake."),
    setting(
        "retries.robots_unreachable",
        Waits,
        "After a robots.txt that could not be fetched.",
    ),
    setting(
        "retries.http_429",
        Waits,
        "After 429 (too many requests), or another status from 400 to 499 by which a limiter refuses.",
    ),
    setting("retries.http_500", Waits, "After 500."),
    setting("retries.http_502", Waits, "After 502, 520, 521 and 523."),
    setting("retries.http_503", Waits, "After 503, 425 and 529."),
    setting("retries.http_504", Waits, "After 504, 522 and 524."),
    setting(
        "backoff.robots",
        Waits,
        "While its robots.txt cannot be fetched.",
    ),
    setting(
        "backoff.unreachable",
        Waits,
        "While requests get no connection or no answer.",
    ),
    setting("backoff.dns", Waits, "While its name does not resolve."),
    setting(
        "backoff.busy",
        Waits,
        "While it answers 429 or 503, or a limiter refuses with another status.",
    ),
    setting(
        "backoff.blocked",
        Waits,
        "While it blocks. After the last one it backs off until `webfill site SITE --wake`.",
    ),
    setting_without_default(
        "applications.NAME.max_pages",
        Number,
        "Maximum number of pages over all crawls of the application. The rest of its queue waits for a higher limit.",
        "100000",
        "no limit",
    ),
    setting_without_default(
        "applications.NAME.pages_per_second",
        Number,
        "Pages handed out per second.",
        "5.0",
        "no limit",
    ),
    setting_without_default(
        "applications.NAME.max_sites",
        Number,
        "Sites requested at the same time.",
        "50",
        "no limit",
    ),
    setting(
        "retention.pages_days",
        Whole(0, MAX_DAYS),
        "Drop pages that were fetched more than this many days ago. Records keep the values of dropped pages. 0: never.",
    ),
    setting(
        "retention.log_days",
        Whole(0, MAX_DAYS),
        "Drop entries of MongoDB's log of pages that are more than this many days old. Slower readers of `webfill export --since` get an error. 0: together with the pages.",
    ),
    setting(
        "retention.samples_mib",
        Whole(0, 1 << 20),
        "Maximum size of the page texts that are kept [to repair mappings](../explanation/health.md#kept-page-texts), of all mappings together, in MiB. 0: none.",
    ),
    setting(
        "disk.floor_mib",
        Whole(0, 1 << 40),
        "Pause below this free space on a disk, in MiB, until a quarter more is free: no tasks, fetches or new requests. Disks: state folder, SQLite files, archive, kept documents. 0: never; a full disk ends the process with 17.",
    ),
    setting_without_default(
        "log.folder",
        Text,
        "Folder of the log files. Each process of a fleet needs its own.",
        "\"/var/log/webfill/dispatcher\"",
        "`logs` in the state folder",
    ),
    setting(
        "log.level",
        Text,
        "`error`, `warn`, `info`, `debug`, `trace`, or directives such as `info,webfill_worker=debug`; `info,journey=debug` logs each step of each task ([operate.md](../how-to/operate.md#history-of-a-url)).",
    ),
    setting(
        "log.keep",
        Whole(1, 100_000),
        "Log files kept per process. A new one begins each day, and when one is full.",
    ),
    setting(
        "log.max_mib",
        Whole(1, 1 << 20),
        "Maximum size of a log file, in MiB.",
    ),
    setting(
        "log.audit_keep",
        Whole(1, 100_000),
        "Files kept of the dispatcher's [audit log](../explanation/security.md#the-audit-log), including the current one. A new one begins each day, and when one is full.",
    ),
];
