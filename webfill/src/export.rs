use webfill_startup::{ExitStatus, Fault};
pub fn run(_o: crate::cli::ExportOptions) -> Result<ExitStatus, Fault> {
    Err(Fault::error("x"))
}
