//! The command lines that run one role of a fleet.

use std::path::PathBuf;

use clap::Args;
use webfill_wire::Lane;

use super::parsers::{parse_id, whole_number};

#[derive(Debug, Clone, Args)]
pub struct DispatcherOptions {
    /// Settings file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Host name or address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "HOST")]
    pub listen: Option<String>,
    /// Port of the tasks socket; outcomes, control and firehose use the next three [default: 5555]
    #[arg(long, value_name = "N", value_parser = whole_number(0..=u16::MAX))]
    pub port: Option<u16>,
    /// Address for HTTP requests, or `off`; beyond loopback only with TLS and tokens [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// State folder: the dispatcher's files and logs [default: .webfill]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Folder of mapping files [default: etl-mappings]
    #[arg(long, value_name = "DIR")]
    pub mappings: Option<PathBuf>,
    /// Store of records, pages and crawls: sqlite:FILE or mongodb://... [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// Cache of robots.txt files and site clocks [default: the store]
    #[arg(long, value_name = "URI")]
    pub cache: Option<String>,
    /// Folder of keys (see `webfill keys`); needed for connections between machines
    #[arg(long, value_name = "DIR")]
    pub keys: Option<PathBuf>,
    /// Start from a restored backup: wait until requests of the earlier fleet have ended
    #[arg(long)]
    pub restored: bool,
    /// Stand by: keep a journal in the store, but never begin one; wait for another dispatcher's
    #[arg(long, conflicts_with_all = ["local", "restored"])]
    pub standby: bool,
    /// Make the serving dispatcher hand over to its standby, and wait until the standby serves
    #[arg(long, conflicts_with_all = ["local", "restored", "standby"])]
    pub hand_over: bool,
    /// Sockets in the state folder instead of ports
    #[arg(long, hide = true)]
    pub local: bool,
}

#[derive(Debug, Args)]
pub struct SupervisorOptions {
    /// Settings file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address of the dispatcher's tasks socket, or several separated by commas [default: tcp://127.0.0.1:5555]
    #[arg(long, value_name = "tcp://HOST:PORT")]
    pub dispatcher: Option<String>,
    /// Name of the supervisor, unique in the fleet [default: the host's name]
    #[arg(long, value_name = "NAME", value_parser = parse_id)]
    pub id: Option<String>,
    /// How its workers fetch pages; `browser` runs their scripts in Chromium first [default: http]
    #[arg(long, value_name = "http|browser")]
    pub lane: Option<Lane>,
    /// Worker processes [default: one per core; in the lane browser, one]
    #[arg(long, value_name = "N", value_parser = whole_number(0..=999_u16))]
    pub workers: Option<u16>,
    /// Maximum number of tasks held [default: four for each fetch in flight]
    #[arg(long, value_name = "N", value_parser = whole_number(0..=u32::MAX))]
    pub queue: Option<u32>,
    /// State folder: sockets and logs [default: .webfill]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Store of records, pages and crawls: sqlite:FILE or mongodb://... [default: sqlite:webfill.db]
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// Cache of robots.txt files and site clocks [default: the store]
    #[arg(long, value_name = "URI")]
    pub cache: Option<String>,
    /// Folder for WARC files of all fetches [default: no archive]
    #[arg(long, value_name = "DIR")]
    pub warc: Option<PathBuf>,
    /// Read documents as pages, too: PDF, DOCX, XLSX, XLS, ODT, ODS, RTF, plain text
    #[arg(long)]
    pub documents: bool,
    /// Folder for the original files of documents, one copy each; implies --documents [default: none are kept]
    #[arg(long, value_name = "DIR")]
    pub keep_documents: Option<PathBuf>,
    /// Folder of keys (see `webfill keys`); needed for connections between machines
    #[arg(long, value_name = "DIR")]
    pub keys: Option<PathBuf>,
    /// Sockets in the state folder instead of ports
    #[arg(long, hide = true)]
    pub local: bool,
}

#[derive(Debug, Args)]
pub struct WorkerOptions {
    #[arg(long)]
    pub config: PathBuf,
    #[arg(long)]
    pub worker_index: u16,
    #[arg(long)]
    pub incarnation: u32,
    #[arg(long)]
    pub local: bool,
}

/// The limits of the reading process; see `webfill_reader::Limits`.
#[derive(Debug, Args)]
pub struct ReadDocumentOptions {
    #[arg(long)]
    pub memory_bytes: u64,
    #[arg(long)]
    pub cpu_seconds: u64,
    #[arg(long)]
    pub input_bytes: u64,
    #[arg(long)]
    pub text_bytes: u64,
}
