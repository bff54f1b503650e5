//! The resource limits of one document.

/// The limits of the process that reads one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory in addition to the program itself.
    pub memory_bytes: u64,
    /// Seconds of CPU time.
    pub cpu_seconds: u64,
    /// Bytes of the document.
    pub input_bytes: u64,
    /// Bytes of its text.
    pub text_bytes: u64,
}

impl Limits {
    /// The arguments for `webfill read-document`.
    pub fn to_arguments(self) -> [String; 4] {
        [
            format!("--memory-bytes={}", self.memory_bytes),
            format!("--cpu-seconds={}", self.cpu_seconds),
            format!("--input-bytes={}", self.input_bytes),
            format!("--text-bytes={}", self.text_bytes),
        ]
    }
}
