//! The resource limits of one document.

/// The limits of the process that reads one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The memory in bytes, in addition to the program itself.
    pub memory_bytes: u64,
    /// The CPU time in seconds.
    pub cpu_seconds: u64,
    /// The size of the document in bytes.
    pub input_bytes: u64,
    /// The size of the text of the document in bytes.
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
