//! Sends the text of a notification as mail, through one SMTP server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, Message, SmtpTransport, Transport};
use serde_json::Value;

use super::target::{DeliveryResources, Target, TargetRefusal, run_blocking};
use crate::config::NotificationsConfig;
use crate::delivery::Delivery;
use crate::permissions::Permissions;
use crate::smtp_address::{Secrecy, SmtpAddress};
use crate::verdict::Verdict;

const NO_SERVER: &str =
    "mail is off: set `notifications.smtp` and `notifications.mail_from` in the settings";
const NO_RECIPIENT: &str = "this recipient is not allowed: add the address, or @DOMAIN, to `notifications.mail_to` in the dispatcher's settings";

/// The time limit for each answer of the server.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Codes of replies about user, password or encryption. They are not about the mail itself, so the delivery is retried.
const OF_LOGIN: std::ops::RangeInclusive<u16> = 530..=538;

/// A target that is a mail address.
pub(super) struct Mail<'a>(pub(super) &'a str);

#[async_trait]
impl Target for Mail<'_> {
    fn check(&self, permissions: &Permissions) -> Result<(), TargetRefusal> {
        let refused = |why: &str| Err(("mail", why.to_owned()));
        if permissions.config.smtp.is_none() {
            return refused(NO_SERVER);
        }
        match !permissions.is_of_fleet() || is_listed(&permissions.config.mail_to, self.0) {
            true => Ok(()),
            false => refused(NO_RECIPIENT),
        }
    }

    async fn deliver(&self, means: &Arc<DeliveryResources>, delivery: &Arc<Delivery>) -> Verdict {
        let (means, delivery) = (Arc::clone(means), Arc::clone(delivery));
        let address = self.0.to_owned();
        run_blocking(move || {
            send(
                &means.permissions.config,
                &address,
                &delivery.key,
                &delivery.notification,
            )
        })
        .await
    }
}

/// Whether a list of permitted recipients has the address, or `@` with its whole domain.
fn is_listed(list: &[String], address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    list.iter().any(|allowed| {
        let allowed = allowed.to_ascii_lowercase();
        match allowed.starts_with('@') {
            true => address.ends_with(&allowed),
            false => address == allowed,
        }
    })
}

/// Sends the mail, and blocks the thread until the server has answered.
fn send(config: &NotificationsConfig, to: &str, key: &str, notification: &Value) -> Verdict {
    let message = match compose_mail(config, to, key, notification) {
        Ok(message) => message,
        Err(why) => return Verdict::Dropped(why),
    };
    let transport = match build_transport(config) {
        Ok(transport) => transport,
        Err(why) => return Verdict::Failed(why),
    };
    match transport.send(&message) {
        Ok(_) => Verdict::Delivered,
        Err(error) => {
            let code = error.status().map(u16::from);
            let is_final =
                error.is_permanent() && code.is_some_and(|code| !OF_LOGIN.contains(&code));
            match is_final {
                true => Verdict::Dropped(format!("the server refuses it: {error}")),
                false => Verdict::Failed(error.to_string()),
            }
        }
    }
}

/// Composes the mail. The mail library encodes the headers, so text from pages, such as a line end, cannot add others.
fn compose_mail(
    config: &NotificationsConfig,
    to: &str,
    key: &str,
    notification: &Value,
) -> Result<Message, String> {
    let address = |text: &str| {
        let address: Result<Address, _> = text.parse();
        address.map_err(|error| format!("`{text}` is not an address: {error}"))
    };
    let from = address(config.mail_from.as_deref().unwrap_or_default())?;
    let domain = from.domain().to_owned();
    let text = |name: &str| notification[name].as_str().unwrap_or_default();
    let one_line = |text: &str| text.replace(|c: char| c.is_control(), " ");
    Message::builder()
        .from(from.into())
        .to(address(to)?.into())
        .subject(one_line(text("subject")))
        .message_id(Some(format!("<{key}@{domain}>")))
        .header(ContentType::TEXT_PLAIN)
        .body(text("text").to_owned())
        .map_err(|error| format!("the mail cannot be written: {error}"))
}

fn build_transport(config: &NotificationsConfig) -> Result<SmtpTransport, String> {
    let smtp = config
        .smtp
        .as_deref()
        .ok_or("there is no `notifications.smtp`")?;
    let server = SmtpAddress::parse(smtp)?;
    let tls = match server.secrecy {
        Secrecy::Plain => Tls::None,
        Secrecy::StartTls => Tls::Required(tls_parameters(config, &server.host)?),
        Secrecy::Tls => Tls::Wrapper(tls_parameters(config, &server.host)?),
    };
    let mut builder = SmtpTransport::builder_dangerous(&server.host)
        .port(server.port)
        .tls(tls)
        .timeout(Some(TIMEOUT));
    if let (Some(user), Some(file)) = (&config.smtp_user, &config.smtp_password_file) {
        let password = std::fs::read_to_string(file).map_err(|error| {
            format!(
                "notifications.smtp_password_file = \"{}\": {error}",
                file.display()
            )
        })?;
        let password = password.trim_end_matches(['\r', '\n']).to_owned();
        builder = builder.credentials(Credentials::new(user.clone(), password));
    }
    Ok(builder.build())
}

fn tls_parameters(config: &NotificationsConfig, host: &str) -> Result<TlsParameters, String> {
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(file) = &config.ca_file {
        let unreadable = |error: &dyn std::fmt::Display| {
            format!("notifications.ca_file = \"{}\": {error}", file.display())
        };
        let pem = std::fs::read(file).map_err(|error| unreadable(&error))?;
        let certificate = Certificate::from_pem(&pem).map_err(|error| unreadable(&error))?;
        builder = builder.add_root_certificate(certificate);
    }
    builder
        .build()
        .map_err(|error| format!("cannot set up TLS: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mail_text(notification: &Value) -> String {
        let config = NotificationsConfig {
            mail_from: Some("webfill@b.example".into()),
            ..NotificationsConfig::default()
        };
        let message = compose_mail(&config, "a@b.example", "the-key", notification).unwrap();
        String::from_utf8(message.formatted()).unwrap()
    }

    #[test]
    fn no_page_can_add_a_header() {
        let evil = "Sale\r\nBcc: all@b.example\r\n\r\nHello \u{2028} \0 ü";
        let mail = mail_text(&json!({"subject": evil, "text": "text"}));
        let (head, body) = mail.split_once("\r\n\r\n").unwrap();
        let names: Vec<&str> = head
            .lines()
            .filter(|line| !line.starts_with([' ', '\t']))
            .filter_map(|line| line.split(':').next())
            .collect();
        for name in &names {
            let known = [
                "From",
                "To",
                "Subject",
                "Message-ID",
                "Content-Type",
                "Date",
                "Content-Transfer-Encoding",
                "MIME-Version",
            ];
            assert!(known.contains(name), "{head}");
        }
        assert_eq!(names.iter().filter(|name| **name == "Subject").count(), 1);
        assert!(head.contains("Message-ID: <the-key@b.example>"), "{head}");
        assert_eq!(body.trim_end(), "text");
    }

    #[test]
    fn an_invalid_address_is_not_retried() {
        let config = NotificationsConfig::default();
        let verdict = send(&config, "a@b.example\r\nDATA", "k", &json!({}));
        assert!(matches!(verdict, Verdict::Dropped(_)), "{verdict:?}");
    }
}
