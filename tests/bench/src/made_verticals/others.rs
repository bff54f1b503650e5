//! The verticals that the weights for proposing values were estimated on.

use super::kinds::Kind::{
    Address, Day, Duration, Isbn, Money, Name, Number, OneOf, Person, Phone, SomeOf, Website,
};
use super::kinds::{Vertical, part};
use super::words::{DISHES, FIRMS, GENRES, HOUSES, MANNERS, NOUNS, PLACES, TASTES};

/// Further verticals. The weights for proposing values were estimated on them, so that the measured verticals (kinds of
/// sites) remain independent.
pub const OTHERS: &[Vertical] = &[
    Vertical {
        name: "recipe",
        schema: "Recipe",
        fields: &[
            part(
                "dish",
                &["Recipe", "Dish", "Name", "Title"],
                "name",
                Name(TASTES, DISHES),
            ),
            part(
                "cook",
                &["By", "Recipe by", "Cook", "Submitted by", "Author"],
                "author",
                Person,
            ),
            part(
                "ready_in",
                &["Ready in", "Total time", "Takes", "Time"],
                "totalTime",
                Duration,
            ),
            part(
                "servings",
                &["Servings", "Serves", "Yield", "Portions"],
                "recipeYield",
                Number(2, 12, " servings"),
            ),
            part(
                "ingredients",
                &["Ingredients", "You need", "Shopping list"],
                "recipeIngredient",
                SomeOf(TASTES),
            ),
        ],
        beside: &[
            part(
                "",
                &["Prep time", "Preparation", "Active time"],
                "prepTime",
                Duration,
            ),
            part("", &["Cook time", "Baking", "Oven"], "cookTime", Duration),
            part("", &["Photo by", "Tested by", "Adapted from"], "", Person),
            part(
                "",
                &["Calories", "Energy", "Kcal"],
                "calories",
                Number(90, 900, ""),
            ),
            part("", &["Makes", "Pieces"], "", Number(2, 24, " servings")),
            part("", &["Published", "Updated", "Added"], "datePublished", Day),
            part(
                "",
                &["Goes with", "Variations", "Garnish"],
                "",
                SomeOf(TASTES),
            ),
        ],
    },
    Vertical {
        name: "event",
        schema: "Event",
        fields: &[
            part(
                "event",
                &["Event", "What", "Name", "Title"],
                "name",
                Name(
                    MANNERS,
                    &[
                        "Festival",
                        "Concert",
                        "Fair",
                        "Workshop",
                        "Gala",
                        "Conference",
                        "Parade",
                        "Market",
                        "Opera",
                    ],
                ),
            ),
            part(
                "starts",
                &["Starts", "When", "Date", "Start date", "Begins"],
                "startDate",
                Day,
            ),
            part(
                "city",
                &["City", "Where", "Place", "Location"],
                "addressLocality",
                OneOf(PLACES),
            ),
            part(
                "tickets",
                &["Tickets", "Price", "Admission", "Ticket price", "Entry"],
                "price",
                Money(500, 15_000),
            ),
            part(
                "organizer",
                &["Organizer", "Presented by", "Host", "Organised by"],
                "organizer",
                OneOf(FIRMS),
            ),
        ],
        beside: &[
            part("", &["Ends", "Until", "End date"], "endDate", Day),
            part("", &["On sale from", "Announced", "Updated"], "", Day),
            part(
                "",
                &["Fees", "Service charge", "VIP"],
                "",
                Money(100, 25_000),
            ),
            part(
                "",
                &["Sponsor", "Ticketing by", "Media partner"],
                "sponsor",
                OneOf(FIRMS),
            ),
            part(
                "",
                &["Next stop", "Previous stop", "Office"],
                "",
                OneOf(PLACES),
            ),
            part(
                "",
                &["Contact", "Performer", "Moderator"],
                "performer",
                Person,
            ),
            part(
                "",
                &["Seats", "Capacity", "Attending"],
                "",
                Number(50, 5_000, ""),
            ),
            part(
                "",
                &["Box office", "Hotline", "Info line"],
                "telephone",
                Phone,
            ),
        ],
    },
    Vertical {
        name: "house",
        schema: "House",
        fields: &[
            part(
                "street",
                &["Address", "Street", "Property", "Listing"],
                "streetAddress",
                Address,
            ),
            part(
                "asking_price",
                &["Asking price", "Price", "List price", "Offered at"],
                "price",
                Money(9_000_000, 99_000_000),
            ),
            part(
                "agent",
                &["Agent", "Listed by", "Realtor", "Listing agent"],
                "agent",
                Person,
            ),
            part(
                "area",
                &["Area", "Living area", "Size", "Square feet"],
                "floorSize",
                Number(600, 6_000, " sq ft"),
            ),
            part(
                "agent_phone",
                &["Phone", "Call agent", "Agent phone", "Telephone"],
                "telephone",
                Phone,
            ),
        ],
        beside: &[
            part(
                "",
                &["Lot size", "Lot", "Garage"],
                "",
                Number(600, 20_000, " sq ft"),
            ),
            part(
                "",
                &["Last sold for", "Estimate", "Tax value"],
                "",
                Money(6_000_000, 99_000_000),
            ),
            part(
                "",
                &["Monthly payment", "HOA dues", "Taxes"],
                "",
                Money(10_000, 500_000),
            ),
            part("", &["Owner", "Lender", "Stager"], "", Person),
            part(
                "",
                &["Office phone", "Fax", "Mortgage line"],
                "faxNumber",
                Phone,
            ),
            part(
                "",
                &["Listed on", "Open house", "Updated"],
                "datePosted",
                Day,
            ),
            part(
                "",
                &["Style", "Building", "Type"],
                "",
                OneOf(&["Ranch", "Colonial", "Condo", "Townhouse", "Loft"]),
            ),
            part("", &["Website", "Virtual tour", "Video"], "url", Website),
        ],
    },
    Vertical {
        name: "album",
        schema: "MusicAlbum",
        fields: &[
            part(
                "album",
                &["Album", "Title", "Name", "Release"],
                "name",
                Name(MANNERS, NOUNS),
            ),
            part(
                "artist",
                &["Artist", "By", "Performer", "Band", "Artists"],
                "byArtist",
                Person,
            ),
            part(
                "record_label",
                &["Label", "Record label", "Released on", "Record company"],
                "recordLabel",
                OneOf(HOUSES),
            ),
            part(
                "released",
                &[
                    "Released",
                    "Release date",
                    "Date",
                    "Original release",
                    "Out",
                ],
                "datePublished",
                Day,
            ),
            part(
                "styles",
                &["Style", "Styles", "Genre", "Genres"],
                "genre",
                SomeOf(GENRES),
            ),
        ],
        beside: &[
            part(
                "",
                &["Producer", "Engineer", "Composer"],
                "producer",
                Person,
            ),
            part("", &["Recorded", "Reissued", "Added to catalogue"], "", Day),
            part(
                "",
                &["Length", "Duration", "Playing time"],
                "duration",
                Duration,
            ),
            part(
                "",
                &["Distributor", "Licensed to", "Publisher"],
                "publisher",
                OneOf(HOUSES),
            ),
            part(
                "",
                &["Moods", "Themes", "Similar genres"],
                "",
                SomeOf(GENRES),
            ),
            part(
                "",
                &["Price", "Vinyl price", "Download"],
                "price",
                Money(499, 3_999),
            ),
            part(
                "",
                &["Tracks", "Songs", "Discs"],
                "numTracks",
                Number(1, 24, ""),
            ),
            part("", &["Barcode", "UPC"], "gtin", Isbn),
        ],
    },
];
