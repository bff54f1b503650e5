//! How numbers are written.

/// The notation of numbers as the user sets it. A member that is `None` is inferred from the texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberNotation {
    /// The character before the fraction.
    pub decimal: Option<char>,
    /// The characters between groups of digits. A space stands for any kind of space.
    pub group: Option<Vec<char>>,
}
