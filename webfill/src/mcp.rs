//! `webfill mcp`: a server of the Model Context Protocol on standard input and output, for agents that use webfill.
//!
//! - Tools exist only for the resources that the user has named: a fleet, a store, a folder of tables. Requests to a
//!   fleet are public JSON, as from any client, with the rights of the key. A table is completed by `webfill fill` as a
//!   child process.
//! - Agents may follow instructions that they read, and pages are written by strangers. So every result has the same
//!   form ([`answer::Answer`]), which marks such texts as data and has a limited size.
//! - Standard output carries the protocol and nothing else.
//! - The end of standard input, or a signal, drains all children, and then ends the server. A second signal stops the
//!   children immediately.
//!
//! Only this module and its submodules use the crate `rmcp`.

mod answer;
mod arguments;
mod caller;
mod cells;
mod fill;
mod fills;
mod fleet;
mod folder;
mod input;
mod store;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError};
use rmcp::transport::stdio_pipes;
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use tokio::sync::watch;
use webfill_service::{ExitStatus, Fault};

use self::answer::Answer;
use self::arguments::parse_arguments;
use self::caller::Caller;
use self::fill::Tables;
pub use self::fills::Fills;
use self::fleet::Fleet;
use self::input::{Input, Signals};
use self::store::StoredData;
use crate::demand::ConnectionOptions;
use crate::settings::Settings;

/// The most characters of a refusal, which may repeat text from a table or a page.
const LONGEST_REFUSAL: usize = 4_000;

#[derive(Debug, Args)]
pub struct McpOptions {
    /// Let agents use the fleet of this dispatcher; address of its tasks socket, or several separated by commas
    #[arg(long, value_name = "tcp://HOST:PORT")]
    pub dispatcher: Option<String>,
    /// Folder of keys (see `webfill keys`): agents have their rights; needed for a dispatcher on another machine
    #[arg(long, value_name = "DIR", requires = "dispatcher")]
    pub keys: Option<PathBuf>,
    /// Let agents read this store; without URI, the one in `WEBFILL_STORE`, so that the process list does not show it
    #[arg(long, value_name = "URI", num_args = 0..=1)]
    pub store: Option<Option<String>>,
    /// Let agents complete tables in this folder and below; symbolic links that lead out of it are refused
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// URL of a page that explains the crawl, sent in the user agent; required for public addresses
    #[arg(long, value_name = "URL", requires = "folder", value_parser = crate::cli::parse_contact)]
    pub contact: Option<String>,
    /// Settings file, also for completing tables
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl McpOptions {
    /// The store that agents may read. `--store` must be given, because the variable alone may be set for other
    /// commands.
    fn named_store(&self) -> Result<Option<String>, Fault> {
        let Some(named) = &self.store else {
            return Ok(None);
        };
        let of_variable = || std::env::var("WEBFILL_STORE").ok();
        let uri = named.clone().or_else(of_variable);
        uri.map(Some).ok_or_else(|| {
            Fault::usage("--store: name the store, or set the variable WEBFILL_STORE")
        })
    }
}

/// Runs `webfill mcp`.
pub fn run(options: McpOptions) -> Result<ExitStatus, Fault> {
    let (ended, closing) = watch::channel(false);
    let server = Server::new(options, closing)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    let served = runtime.block_on(server.serve_until_end(ended));
    // Do not wait for the thread that reads standard input, because nothing can interrupt its read.
    runtime.shutdown_background();
    served
}

/// The resources that agents may use.
#[derive(Clone)]
struct Server {
    fleet: Option<Arc<Fleet>>,
    store: Option<Arc<StoredData>>,
    tables: Option<Arc<Tables>>,
    /// Becomes true at the end of standard input.
    closing: watch::Receiver<bool>,
}

impl Server {
    fn new(options: McpOptions, closing: watch::Receiver<bool>) -> Result<Server, Fault> {
        // Check the settings before an agent connects, as other commands do at their start.
        Settings::load(options.config.as_deref())?.validate()?;
        let store = options.named_store()?;
        let connection = ConnectionOptions {
            dispatcher: options.dispatcher,
            keys: options.keys,
            config: options.config.clone(),
        };
        let fleet = match connection.dispatcher {
            Some(_) => Some(Arc::new(Fleet::new(connection)?)),
            None => None,
        };
        let store = store.as_deref().map(StoredData::new).transpose()?;
        let tables = options.folder.map(|folder| {
            Tables::new(
                &folder,
                options.config.as_deref(),
                options.contact.as_deref(),
            )
        });
        let server = Server {
            fleet,
            store: store.map(Arc::new),
            tables: tables.transpose()?.map(Arc::new),
            closing,
        };
        match server.tools().is_empty() {
            false => Ok(server),
            true => Err(Fault::usage(
                "name what agents may use: --dispatcher, --store or --folder",
            )),
        }
    }

    async fn serve_until_end(self, ended: watch::Sender<bool>) -> Result<ExitStatus, Fault> {
        let mut signals = Signals::new()?;
        let (stdin, stdout) = stdio_pipes();
        let transport = (Input::new(stdin, ended), stdout);
        let tables = self.tables.clone();
        let mut closing = self.closing.clone();
        let session = async {
            let running = self.serve(transport).await?;
            // The result only shows how the session ended, so it is ignored.
            let _ = running.waiting().await;
            Ok::<(), ServerInitializeError>(())
        };
        let mut session = std::pin::pin!(session);
        let mut served: Option<Result<(), ServerInitializeError>> = None;
        let was_signalled = tokio::select! {
            ended = &mut session => { served = Some(ended); false }
            _ = closing.wait_for(|closing| *closing) => false,
            () = signals.next() => true,
        };
        if let Some(tables) = tables {
            tables.end_runs(&mut signals).await;
        }
        if served.is_none() && !was_signalled {
            // After the end of input, answers in progress are still sent.
            tokio::select! {
                ended = session => served = Some(ended),
                () = signals.next() => {}
            }
        }
        match served {
            Some(Err(error)) if !matches!(error, ServerInitializeError::ConnectionClosed(_)) => {
                Err(Fault::error(format!("the client's first message: {error}")))
            }
            _ => Ok(ExitStatus::Done),
        }
    }

    fn tools(&self) -> Vec<rmcp::model::Tool> {
        let mut tools = Vec::new();
        if self.fleet.is_some() {
            tools.extend(tools::fleet_tools());
        }
        if self.store.is_some() {
            tools.extend(tools::store_tools());
        }
        if self.tables.is_some() {
            tools.extend(tools::table_tools());
        }
        tools
    }

    /// Runs a tool; `None` if there is no tool of this name.
    async fn run(
        &self,
        tool: &str,
        given: JsonObject,
        caller: &mut Caller,
    ) -> Option<Result<Answer, Fault>> {
        let (fleet, store, tables) = (
            self.fleet.as_deref(),
            self.store.as_deref(),
            self.tables.as_deref(),
        );
        Some(match tool {
            "feed" => fleet?.feed(parse_arguments(given)).await,
            "info" => fleet?.info(parse_arguments(given), caller).await,
            "status" => fleet?.status(parse_arguments(given)).await,
            "why" => fleet?.why(parse_arguments(given)).await,
            "pause" | "resume" => fleet?.pause_or_resume(tool, parse_arguments(given)).await,
            "list_records" => store?.list_records(parse_arguments(given)).await,
            "read_record" => store?.read_record(parse_arguments(given)).await,
            "list_pages" => store?.list_pages(parse_arguments(given)).await,
            "read_page" => store?.read_page(parse_arguments(given)).await,
            "fill" => tables?.fill(parse_arguments(given), caller).await,
            "fill_state" => tables?.fill_state(parse_arguments(given), caller).await,
            "fill_stop" => tables?.fill_stop(parse_arguments(given), caller).await,
            "fill_results" => tables?.fill_results(parse_arguments(given)).await,
            _ => return None,
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("webfill", env!("CARGO_PKG_VERSION")))
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut caller = Caller::new(&context, self.closing.clone());
        let given = request.arguments.unwrap_or_default();
        let ran = tokio::select! {
            ran = self.run(&request.name, given, &mut caller) => ran,
            // The client no longer waits for the answer.
            () = context.ct.cancelled() => Some(Err(Fault::interrupted("cancelled"))),
        };
        let Some(ran) = ran else {
            let unknown = format!("there is no tool `{}`", request.name);
            return Err(ErrorData::invalid_params(unknown, None));
        };
        // Return the reason as a result of the tool, so that the agent reads it. An error of the protocol would not
        // reach the agent.
        let refused = |fault: Fault| {
            let message: String = fault.message.chars().take(LONGEST_REFUSAL).collect();
            let texts = [message.as_str(), answer::REFUSAL_NOTICE];
            CallToolResult::error(texts.map(ContentBlock::text).to_vec())
        };
        let answered = ran.and_then(|answer| answer.into_json());
        Ok(answered
            .map_or_else(refused, CallToolResult::structured)
            .into())
    }
}
