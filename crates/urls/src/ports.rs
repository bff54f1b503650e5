//! Ports that must not be requested.

/// The bad ports of the Fetch Standard (section 2.9, "port blocking"), sorted. A server of another protocol on such a
/// port could take an HTTP request for a command.
const BAD: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Whether the Fetch Standard blocks requests to this port.
pub fn is_bad_port(port: u16) -> bool {
    BAD.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_other_protocols_are_bad() {
        for port in [0, 22, 25, 110, 993, 6667, 10080] {
            assert!(is_bad_port(port), "{port}");
        }
    }

    #[test]
    fn ports_of_web_servers_are_good() {
        for port in [80, 443, 3000, 8000, 8080, 8443, 9200, 65535] {
            assert!(!is_bad_port(port), "{port}");
        }
    }

    #[test]
    fn the_list_is_sorted_as_the_search_needs_it() {
        assert!(BAD.is_sorted());
    }
}
