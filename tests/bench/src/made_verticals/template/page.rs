//! The page of a thing as HTML.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::super::kinds::{Kind, Vertical};
use super::{Block, Names, Place, Shown, Template, Thing, pick_one};
use crate::sites::Values;

const SAYINGS: &[&str] = &[
    "A favourite of many, and for good reasons.",
    "Please check with the seller before you decide.",
    "One of the better ones that we have seen this year.",
    "There is much to say about it, and little of it is bad.",
    "Details may differ from what is shown here.",
];

impl Template {
    /// Makes the page of a thing. Returns its HTML, and the true values of its fields.
    pub fn page(&self, vertical: &Vertical, thing: &Thing, chance: &mut Rng) -> (String, Values) {
        let mut truth = Values::new();
        for part in vertical.fields {
            truth.insert(part.column.to_owned(), Vec::new());
        }
        for (shown, values) in self.shown.iter().zip(&thing.0) {
            if !shown.part.column.is_empty() {
                truth.insert(shown.part.column.to_owned(), values.clone());
            }
        }
        let name = escape_html(&thing.0[0][0]);
        let title = match self.title {
            0 => format!("{name} - {}", self.site),
            1 => format!("{}: {name}", self.site),
            2 => name.clone(),
            _ => self.site.clone(),
        };
        let mut html =
            format!("<!DOCTYPE html><html><head><meta charset=utf-8><title>{title}</title>");
        if self.metadata {
            html += &format!(
                "<meta property=\"og:title\" content=\"{name}\"><meta name=description content=\"{name} at {}\">",
                self.site
            );
        }
        if self.linked {
            html += &self.linked_data(vertical, thing);
        }
        html += &format!(
            "</head><body><div id=top><a href=/>{}</a> <ul class=menu><li><a href=/new>New</a><li><a href=/best>Best</a><li><a href=/about>About us</a></ul></div>",
            self.site
        );
        let scope = match self.microdata {
            true => format!(
                " itemscope itemtype=\"https://schema.org/{}\"",
                vertical.schema
            ),
            false => String::new(),
        };
        html += &format!("<div id=main{scope}>");
        let (tag, property) = (self.heading, self.property_attribute(&self.shown[0]));
        let class = self.class_attribute(&self.shown[0].class);
        html += &format!("<div class=head><{tag}{class}{property}>{name}</{tag}></div>");
        let rest: Vec<(&Shown, &Vec<String>)> = self.shown.iter().zip(&thing.0).skip(1).collect();
        for (shown, values) in rest.iter().filter(|(shown, _)| shown.place != Place::Specs) {
            if !values.is_empty() {
                html += &self.format_separate_part(shown, values);
            }
        }
        html += &format!(
            "<p class=text>{} {}</p>",
            pick_one(SAYINGS, chance),
            pick_one(SAYINGS, chance)
        );
        if let Some(section) = self.section {
            html += &format!("<h3>{section}</h3>");
        }
        let specs: Vec<(&Shown, &Vec<String>)> = rest
            .into_iter()
            .filter(|(shown, _)| shown.place == Place::Specs)
            .collect();
        html += &self.format_specs(&specs);
        html += "</div>";
        html += &self.other_things_html(vertical, chance);
        html += &format!(
            "<div id=foot><p>&copy; 2026 {}. All rights reserved.</p><a href=/terms>Terms</a></div></body></html>",
            self.site
        );
        (html, truth)
    }

    fn class_attribute(&self, class: &str) -> String {
        match self.names {
            Names::None => String::new(),
            _ => format!(" class=\"{class}\""),
        }
    }

    fn property_attribute(&self, shown: &Shown) -> String {
        match self.microdata && !shown.part.property.is_empty() {
            true => format!(" itemprop=\"{}\"", shown.part.property),
            false => String::new(),
        }
    }

    fn format_part(&self, shown: &Shown, values: &[String]) -> String {
        let property = self.property_attribute(shown);
        let several = matches!(shown.part.kind, Kind::SomeOf(_));
        let values: Vec<String> = values.iter().map(|value| escape_html(value)).collect();
        match several || matches!(shown.part.kind, Kind::Person) {
            true => {
                let linked = values.iter().map(|value| {
                    format!(
                        "<a href=\"/find?q={}\"{property}>{value}</a>",
                        value.replace(' ', "+")
                    )
                });
                linked.collect::<Vec<_>>().join(", ")
            }
            false if property.is_empty() => values.join(", "),
            false => format!("<span{property}>{}</span>", values.join(", ")),
        }
    }

    fn format_separate_part(&self, shown: &Shown, values: &[String]) -> String {
        let class = self.class_attribute(&shown.class);
        let value = self.format_part(shown, values);
        match shown.place {
            Place::Bare => format!("<div{class}>{value}</div>"),
            _ => format!("<p{class}><span>{}</span> {value}</p>", shown.label),
        }
    }

    fn format_specs(&self, specs: &[(&Shown, &Vec<String>)]) -> String {
        let mut html = String::new();
        let (open, close) = match self.block {
            Block::TableHeads | Block::TableCells => ("<table>", "</table>"),
            Block::Definitions => ("<dl>", "</dl>"),
            Block::BoldItems => ("<ul>", "</ul>"),
            Block::Pairs | Block::Lines | Block::Breaks => ("<div>", "</div>"),
            Block::Columns => {
                let heads = specs
                    .iter()
                    .map(|(shown, _)| format!("<th>{}</th>", shown.label));
                let cells = specs
                    .iter()
                    .map(|(shown, values)| format!("<td>{}</td>", self.format_part(shown, values)));
                return format!(
                    "<table><tr>{}</tr><tr>{}</tr></table>",
                    heads.collect::<String>(),
                    cells.collect::<String>()
                );
            }
        };
        html += open;
        for (shown, values) in specs.iter().filter(|(_, values)| !values.is_empty()) {
            let (label, value) = (&shown.label, self.format_part(shown, values));
            let class = self.class_attribute(&shown.class);
            html += &match self.block {
                Block::TableHeads => format!("<tr><th>{label}</th><td{class}>{value}</td></tr>"),
                Block::TableCells => format!("<tr><td>{label}</td><td{class}>{value}</td></tr>"),
                Block::Definitions => format!("<dt>{label}</dt><dd{class}>{value}</dd>"),
                Block::BoldItems => format!("<li{class}><b>{label}</b> {value}</li>"),
                Block::Pairs => format!(
                    "<div class=pair><span class=l>{label}</span><span{class}>{value}</span></div>"
                ),
                Block::Lines => format!("<p{class}>{} {value}</p>", add_colon(label)),
                Block::Breaks | Block::Columns => {
                    format!("<strong>{}</strong> {value}<br>", add_colon(label))
                }
            };
        }
        html + close
    }

    fn linked_data(&self, vertical: &Vertical, thing: &Thing) -> String {
        let mut data = Map::new();
        data.insert("@context".into(), "https://schema.org".into());
        data.insert("@type".into(), vertical.schema.into());
        for (shown, values) in self.shown.iter().zip(&thing.0) {
            let property = shown.part.property;
            if property.is_empty() || values.is_empty() {
                continue;
            }
            let value: Value = match (shown.part.kind, values.as_slice()) {
                (Kind::Person, [name]) if property != "name" => {
                    json!({"@type": "Person", "name": name})
                }
                (_, [value]) => json!(value),
                (_, values) => json!(values),
            };
            data.insert(property.to_owned(), value);
        }
        format!(
            "<script type=\"application/ld+json\">{}</script>",
            Value::Object(data)
        )
    }

    /// Misleading content: other things of the same kind, and reviews.
    fn other_things_html(&self, vertical: &Vertical, chance: &mut Rng) -> String {
        let mut html = String::new();
        if self.related > 0 {
            html += "<div class=related><h3>You may also like</h3><ul>";
            for _ in 0..self.related {
                let parts = self
                    .shown
                    .iter()
                    .filter(|shown| !shown.part.column.is_empty());
                let some: Vec<String> = parts
                    .take(3)
                    .map(|shown| {
                        let class = self.class_attribute(&shown.class);
                        format!(
                            "<span{class}>{}</span>",
                            escape_html(&self.draw_value(shown.part.kind, chance).join(", "))
                        )
                    })
                    .collect();
                html += &format!("<li>{}</li>", some.join(" "));
            }
            html += "</ul></div>";
        }
        if self.reviews > 0 {
            html += "<div class=reviews><h3>Reviews</h3>";
            for _ in 0..self.reviews {
                html += &format!(
                    "<div class=review><b>{}</b> <i>{}</i><p>{}</p></div>",
                    escape_html(&self.draw_value(Kind::Person, chance)[0]),
                    self.draw_value(Kind::Day, chance)[0],
                    pick_one(SAYINGS, chance)
                );
            }
            html += "</div>";
        }
        let _ = vertical;
        html
    }
}

fn add_colon(label: &str) -> String {
    format!("{}:", label.trim_end_matches(':'))
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}
