//! Classification of IP addresses by the IANA special-purpose registries. Exceptions that an operator allows are in
//! `policy`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether the address is a public unicast address.
pub(crate) fn is_global(address: IpAddr) -> bool {
    !is_metadata(address)
        && match address {
            IpAddr::V4(v4) => is_global_v4(v4),
            IpAddr::V6(v6) => is_global_v6(v6),
        }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0 | 10 | 127, _, _) => false, // this network, private, loopback
        (100, 64..=127, _) => false,   // carrier-grade NAT
        (169, 254, _) => false,        // link-local
        (172, 16..=31, _) => false,    // private
        (192, 0, 0 | 2) => false,      // protocol assignments, documentation
        (192, 88, 99) => false,        // 6to4 relays, withdrawn
        (192, 168, _) => false,        // private
        (198, 18 | 19, _) => false,    // benchmarks
        (198, 51, 100) => false,       // documentation
        (203, 0, 113) => false,        // documentation
        (224..=255, _, _) => false,    // multicast, reserved, broadcast
        _ => true,
    }
}

/// Only 2000::/3 is global unicast. Everything else is refused without a rule of its own: ::/96 (compatible),
/// ::ffff/96 (mapped), 64:ff9b::/96 and 64:ff9b:1::/48 (NAT64), 100::/64 (discard), fc00::/7, fe80::/10, fec0::/10
/// and ff00::/8.
fn is_global_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    match a {
        0x2001 => b > 0x01ff && b != 0x0db8, // 2001::/23 protocol assignments with Teredo; documentation
        0x2002 => false,                     // 6to4: reaches whatever IPv4 address it embeds
        0x3fff => b > 0x0fff,                // documentation
        0x2000..=0x3ffe => true,
        _ => false,
    }
}

/// Returns whether the address serves credentials or instance data to machines in a cloud. Some of these addresses
/// (Azure's) look public, and others are in ranges that an operator may allow as a whole, so they are listed.
pub(crate) fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_metadata_v4(v4),
        IpAddr::V6(v6) => match v6.segments() {
            // AWS, Google; OpenStack's link-local one.
            [0xfd00, 0x0ec2, ..] | [0xfd20, 0x00ce, ..] | [0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe] => true,
            // The same IPv4 addresses, mapped, compatible, through NAT64 or 6to4.
            [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
            | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            | [0x2002, high, low, ..] => {
                let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
                is_metadata_v4(Ipv4Addr::new(a, b, c, d))
            }
            _ => false,
        },
    }
}

fn is_metadata_v4(address: Ipv4Addr) -> bool {
    matches!(
        address.octets(),
        [169, 254, 169 | 170, _]      // AWS, Azure, Google, most others; ECS and EKS credentials
            | [100, 100, 100, 200]    // Alibaba
            | [168, 63, 129, 16]      // Azure's wire server
            | [192, 0, 0, 192] // Oracle
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(text: &str) -> bool {
        is_global(text.parse().unwrap())
    }

    #[test]
    fn public_addresses_are_global() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
            "3ffe::1",
            "3fff:1000::1",
        ] {
            assert!(global(text), "{text}");
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of addresses")]
    fn special_addresses_are_not_global() {
        for text in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.0.255",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.0",
            "239.255.255.255",
            "240.0.0.0",
            "255.255.255.255",
            "168.63.129.16",
            "100.100.100.200",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::127.0.0.1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:0:4136:e378::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "ff0e::1",
        ] {
            assert!(!global(text), "{text}");
        }
    }

    #[test]
    fn metadata_is_known_in_every_wrapping() {
        for text in [
            "169.254.169.254",
            "169.254.170.2",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::a9fe:a9fe",
        ] {
            assert!(is_metadata(text.parse().unwrap()), "{text}");
        }
        assert!(!is_metadata("169.254.1.1".parse().unwrap()));
        assert!(!is_metadata("::1".parse().unwrap()));
    }
}
