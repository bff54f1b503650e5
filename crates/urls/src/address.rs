//! The IP addresses that a crawler may connect to.
//!
//! The ranges are those of the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890). An IPv6 address
//! that embeds an IPv4 address is judged by the embedded one, because packets are delivered to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a crawler may connect to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// Globally reachable unicast.
    Public,
    /// Reaches this machine or a network around it: loopback, private, shared and link-local addresses. Cloud metadata
    /// services are among the link-local ones. Allowed only if the user says so.
    Private,
    /// Never the address of a host that can be crawled: unspecified, multicast, broadcast, documentation, reserved.
    Never,
}

use AddressClass::{Never, Private, Public};

/// Classifies an address by what a connection to it would reach.
pub fn classify(ip: IpAddr) -> AddressClass {
    match ip {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

fn classify_v4(ip: Ipv4Addr) -> AddressClass {
    match ip.octets() {
        [0, ..] => Never,               // "this network", RFC 791
        [10, ..] => Private,            // RFC 1918
        [100, 64..=127, ..] => Private, // shared by carriers' NAT, RFC 6598
        [127, ..] => Private,           // loopback, RFC 1122
        [168, 63, 129, 16] => Private,  // Azure's metadata and health service
        [169, 254, ..] => Private,      // link-local, RFC 3927; cloud metadata
        [172, 16..=31, ..] => Private,  // RFC 1918
        [192, 0, 0, _] => Never,        // protocol assignments, RFC 6890
        [192, 0, 2, _] => Never,        // documentation, RFC 5737
        [192, 88, 99, _] => Never,      // 6to4 relays, withdrawn by RFC 7526
        [192, 168, ..] => Private,      // RFC 1918
        [198, 18..=19, ..] => Private,  // networks under test, RFC 2544
        [198, 51, 100, _] => Never,     // documentation, RFC 5737
        [203, 0, 113, _] => Never,      // documentation, RFC 5737
        [224..=255, ..] => Never,       // multicast RFC 5771, reserved RFC 1112, broadcast
        _ => Public,
    }
}

fn classify_v6(ip: Ipv6Addr) -> AddressClass {
    if ip == Ipv6Addr::LOCALHOST {
        return Private;
    }
    match ip.segments() {
        // Addresses that embed an IPv4 address.
        [0, 0, 0, 0, 0, 0, a, b] => classify_v4(v4_from_halves(a, b)), // unspecified and IPv4-compatible, RFC 4291
        [0, 0, 0, 0, 0, 0xffff, a, b] => classify_v4(v4_from_halves(a, b)), // IPv4-mapped, RFC 4291
        [0, 0, 0, 0, 0xffff, 0, a, b] => classify_v4(v4_from_halves(a, b)), // IPv4-translated, RFC 2765
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] => classify_v4(v4_from_halves(a, b)), // NAT64, RFC 6052
        [0x64, 0xff9b, 1, ..] => classify_local_nat64(ip),
        [0x2001, 0, _, _, _, _, a, b] => classify_v4(v4_from_halves(!a, !b)), // Teredo client, RFC 4380
        [0x2002, a, b, ..] => classify_v4(v4_from_halves(a, b)),              // 6to4, RFC 3056
        // Addresses of local networks.
        [0x2001, 2, 0, ..] => Private, // networks under test, RFC 5180
        [0xfc00..=0xfdff, ..] => Private, // unique local, RFC 4193
        [0xfe80..=0xfeff, ..] => Private, // link-local RFC 4291, site-local RFC 3879
        // Parts of the global unicast block that no host has.
        [0x2001, 0..=0x1ff, ..] => Never, // protocol assignments, RFC 2928
        [0x2001, 0xdb8, ..] => Never,     // documentation, RFC 3849
        [0x3fff, 0..=0xfff, ..] => Never, // documentation, RFC 9637
        [0x2000..=0x3fff, ..] => Public,  // global unicast, RFC 4291
        _ => Never,                       // multicast, discard-only, reserved by the IETF
    }
}

/// Judges an address with a NAT64 prefix that a network chose itself within 64:ff9b:1::/48 (RFC 8215). The address does
/// not show how long its prefix is. Two readings are accepted: a prefix of 48 bits with an empty suffix, and a prefix
/// of 96 bits whose last 48 bits are zero. They leave no bit unexplained, while any other reading might hide an
/// address.
fn classify_local_nat64(ip: Ipv6Addr) -> AddressClass {
    match ip.segments() {
        [_, _, _, 0, 0, 0, a, b] => classify_v4(v4_from_halves(a, b)),
        // RFC 6052, 2.2: bits 64 to 71 are zero. They split the IPv4 address in two.
        [_, _, _, a, b @ 0..=0xff, c, 0, 0] if c & 0xff == 0 => {
            classify_v4(v4_from_halves(a, b << 8 | c >> 8))
        }
        _ => Never,
    }
}

fn v4_from_halves(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_class(expected: AddressClass, addresses: &[&str]) {
        for text in addresses {
            assert_eq!(classify(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_addresses_are_public() {
        assert_class(
            Public,
            &[
                "8.8.8.8",
                "1.1.1.1",
                "172.15.255.255",
                "172.32.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "168.63.129.17",
                "223.255.255.255",
                "2606:4700:4700::1111",
                "2a00:1450:4001:82a::200e",
                "2001:4860:4860::8888",
            ],
        );
    }

    #[test]
    fn this_machine_and_the_networks_around_it_are_private() {
        assert_class(
            Private,
            &[
                "127.0.0.1",
                "127.255.255.254",
                "10.0.0.1",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.1.1",
                "100.64.0.1",
                "100.100.100.200",
                "169.254.169.254",
                "168.63.129.16",
                "198.18.0.1",
                "::1",
                "fd00:ec2::254",
                "fc00::1",
                "fe80::1",
                "fec0::1",
                "2001:2::1",
            ],
        );
    }

    #[test]
    fn addresses_of_no_host_are_never_reached() {
        assert_class(
            Never,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "192.0.0.192",
                "192.0.2.1",
                "192.88.99.1",
                "198.51.100.1",
                "203.0.113.1",
                "224.0.0.1",
                "239.255.255.250",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "ff02::1",
                "2001:db8::1",
                "3fff::1",
                "100::1",
                "2001:10::1",
                "5f00::1",
                "4000::1",
            ],
        );
    }

    #[test]
    fn an_ipv4_address_embedded_in_an_ipv6_address_counts() {
        assert_class(
            Private,
            &[
                "::ffff:127.0.0.1",
                "::127.0.0.1",
                "::ffff:0:10.0.0.1",
                "64:ff9b::169.254.169.254",
                "64:ff9b:1::192.168.0.1",
                "64:ff9b:1:7f00:0:100::",
                "2002:7f00:1::",
                "2002:c0a8:101::1",
                "2001:0:4136:e378:8000:63bf:80ff:fffe",
            ],
        );
        assert_class(
            Public,
            &[
                "::ffff:8.8.8.8",
                "64:ff9b::8.8.8.8",
                "64:ff9b:1::8.8.8.8",
                "64:ff9b:1:808:8:800::",
                "2002:808:808::1",
                "2001:0:4136:e378:8000:63bf:f7f7:f7f7",
            ],
        );
        assert_class(
            Never,
            &["::ffff:0.0.0.0", "64:ff9b::", "2002:e000:1::", "2002::"],
        );
    }

    #[test]
    fn an_ambiguous_local_translation_prefix_is_never_reached() {
        assert_class(
            Never,
            &["64:ff9b:1:7f00:0:100:808:808", "64:ff9b:1:fffe::8.8.8.8"],
        );
    }
}
