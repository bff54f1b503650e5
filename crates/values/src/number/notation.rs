//! How numbers are written.

/// The notation of numbers. Members that are `None` are inferred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberNotation {
    /// The character before the fraction.
    pub decimal: Option<char>,
    /// The characters between groups of digits. A space stands for any kind of space.
    pub group: Option<Vec<char>>,
}
