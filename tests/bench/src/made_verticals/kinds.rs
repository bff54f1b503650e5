//! Verticals: groups of sites about things of one kind. For each, the fields, their names on sites, and misleading
//! content of the same form.

/// The kind of a field's values, which determines how they are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The name of a thing, made of one word from each list.
    Name(&'static [&'static str], &'static [&'static str]),
    Person,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Some of these words.
    SomeOf(&'static [&'static str]),
    /// An amount of money between two bounds, in hundredths.
    Money(u32, u32),
    Day,
    /// A number between two bounds, with its unit.
    Number(u32, u32, &'static str),
    Phone,
    Isbn,
    Address,
    Website,
    /// A height in feet and inches.
    Height,
    /// A duration in minutes.
    Duration,
}

/// A part of a page: a field, or misleading content of the same form.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The name of the column for this field; empty if the part is misleading content.
    pub column: &'static str,
    /// The labels that sites use for this part.
    pub labels: &'static [&'static str],
    /// The property of schema.org for this part; empty if there is none.
    pub property: &'static str,
    pub kind: Kind,
}

pub struct Vertical {
    pub name: &'static str,
    /// The type of the things in schema.org.
    pub schema: &'static str,
    /// The fields of a thing. The first one is its name.
    pub fields: &'static [Part],
    pub beside: &'static [Part],
}

const fn part(
    column: &'static str,
    labels: &'static [&'static str],
    property: &'static str,
    kind: Kind,
) -> Part {
    Part {
        column,
        labels,
        property,
        kind,
    }
}

use Kind::{
    Address, Day, Duration, Height, Isbn, Money, Name, Number, OneOf, Person, Phone, SomeOf,
    Website,
};

const HOUSES: &[&str] = &[
    "Norton",
    "Penguin",
    "Vintage",
    "Harper",
    "Knopf",
    "Tor",
    "Faber",
    "Picador",
    "Scribner",
    "Ecco",
    "Viking",
    "Granta",
    "Verso",
    "Dover",
    "Anchor Books",
    "Crown",
    "Riverhead",
    "Holt",
];
const BRANDS: &[&str] = &[
    "Canon",
    "Nikon",
    "Sony",
    "Olympus",
    "Pentax",
    "Fujifilm",
    "Panasonic",
    "Leica",
    "Kodak",
    "Samsung",
    "Ricoh",
    "Casio",
    "Sigma",
    "Polaroid",
];
const FIRMS: &[&str] = &[
    "Acme Corp",
    "Globex",
    "Initech",
    "Umbra Labs",
    "Stark Foods",
    "Wayne Freight",
    "Hooli",
    "Vandelay Imports",
    "Cyberdyne",
    "Tyrell",
    "Soylent",
    "Aperture",
    "Massive Dynamic",
    "Oscorp",
    "Dunder Paper",
    "Pied Piper",
    "Blue Sun",
    "Virtucon",
    "Monarch",
    "Nakatomi",
];
const PLACES: &[&str] = &[
    "Austin, TX",
    "Boston, MA",
    "Denver, CO",
    "Seattle, WA",
    "Miami, FL",
    "Dallas, TX",
    "Portland, OR",
    "Chicago, IL",
    "Tucson, AZ",
    "Omaha, NE",
    "Reno, NV",
    "Tulsa, OK",
    "Fresno, CA",
    "Buffalo, NY",
    "Mobile, AL",
    "Salem, OR",
    "Boise, ID",
    "Akron, OH",
];
const GENRES: &[&str] = &[
    "Drama",
    "Comedy",
    "Thriller",
    "Horror",
    "Romance",
    "Action",
    "Western",
    "Mystery",
    "Crime",
    "Adventure",
    "Fantasy",
    "War",
];
const TEAMS: &[&str] = &[
    "Boston Celtics",
    "Chicago Bulls",
    "Miami Heat",
    "Utah Jazz",
    "Phoenix Suns",
    "Denver Nuggets",
    "Toronto Raptors",
    "Dallas Mavericks",
    "Houston Rockets",
    "Atlanta Hawks",
    "Indiana Pacers",
    "Orlando Magic",
    "Detroit Pistons",
    "Milwaukee Bucks",
];
const CUISINES: &[&str] = &[
    "Italian",
    "Mexican",
    "Thai",
    "French",
    "Indian",
    "Greek",
    "Japanese",
    "Korean",
    "Ethiopian",
    "Spanish",
    "Vegan",
    "Steakhouse",
    "Seafood",
    "Cuban",
    "Lebanese",
];
const NOUNS: &[&str] = &[
    "River", "Shadow", "Winter", "Garden", "Empire", "Letter", "Ocean", "Mirror", "Harbor",
    "Falcon", "Orchard", "Lantern", "Desert", "Station", "Island", "Clock", "Bridge", "Forest",
];
const MANNERS: &[&str] = &[
    "Silent", "Last", "Hidden", "Broken", "Golden", "Distant", "Burning", "Lost", "Crooked",
    "Second", "Frozen", "Painted", "Endless", "Hollow", "Scarlet", "Quiet", "Northern", "Blind",
];
const MODELS: &[&str] = &[
    "PowerShot",
    "Coolpix",
    "Cyber-shot",
    "Optio",
    "FinePix",
    "Lumix",
    "EasyShare",
    "Stylus",
    "Exilim",
    "D-Lux",
    "Alpha",
    "EOS",
];
const CODES: &[&str] = &[
    "SX20", "P90", "W290", "E70", "S200", "TZ7", "Z915", "1010", "FH100", "A380", "5D", "K-7",
    "G11", "S8000", "H55", "X70", "FX48", "C180",
];
const JOBS: &[&str] = &[
    "Engineer",
    "Analyst",
    "Nurse",
    "Accountant",
    "Manager",
    "Developer",
    "Technician",
    "Driver",
    "Designer",
    "Clerk",
    "Teacher",
    "Chemist",
    "Planner",
    "Consultant",
];
const RANKS: &[&str] = &[
    "Senior",
    "Junior",
    "Lead",
    "Staff",
    "Assistant",
    "Principal",
    "Regional",
    "Night",
    "Field",
    "Chief",
    "Associate",
    "Interim",
];
const DISHES: &[&str] = &[
    "Lasagna",
    "Curry",
    "Soup",
    "Stew",
    "Salad",
    "Pie",
    "Risotto",
    "Tacos",
    "Ramen",
    "Chowder",
    "Paella",
    "Dumplings",
    "Gratin",
    "Chili",
];
const TASTES: &[&str] = &[
    "Spicy", "Creamy", "Roasted", "Lemon", "Smoky", "Garlic", "Pumpkin", "Mushroom", "Spinach",
    "Lentil", "Chicken", "Coconut",
];
const SAINTS: &[&str] = &[
    "Marlow",
    "Ashby",
    "Kingsford",
    "Delmont",
    "Briar",
    "Westlake",
    "Hartwell",
    "Langdon",
    "Pembroke",
    "Redfield",
    "Stanton",
    "Oakmont",
    "Fairview",
    "Carver",
    "Ellison",
    "Norwood",
];

/// The verticals that measurements use.
pub const MEASURED: &[Vertical] = &[
    Vertical {
        name: "book",
        schema: "Book",
        fields: &[
            part(
                "title",
                &["Title", "Book", "Name", "Book Title"],
                "name",
                Name(MANNERS, NOUNS),
            ),
            part(
                "author",
                &["Author", "Written by", "By", "Author(s)", "Writer"],
                "author",
                Person,
            ),
            part(
                "isbn_13",
                &["ISBN-13", "ISBN13", "ISBN", "EAN", "ISBN 13"],
                "isbn",
                Isbn,
            ),
            part(
                "publisher",
                &["Publisher", "Published by", "Imprint", "Publishing house"],
                "publisher",
                OneOf(HOUSES),
            ),
            part(
                "publication_date",
                &[
                    "Publication date",
                    "Pub. Date",
                    "Published",
                    "Release date",
                    "Date",
                ],
                "datePublished",
                Day,
            ),
        ],
        beside: &[
            part(
                "",
                &["Pages", "Page count", "Length"],
                "numberOfPages",
                Number(90, 900, ""),
            ),
            part(
                "",
                &["Illustrator", "Editor", "Narrator", "Translator"],
                "illustrator",
                Person,
            ),
            part(
                "",
                &["Price", "Our price", "Sale price"],
                "price",
                Money(499, 4_999),
            ),
            part("", &["List price", "RRP"], "", Money(999, 5_999)),
            part(
                "",
                &["Available since", "Added", "Last updated"],
                "dateModified",
                Day,
            ),
            part(
                "",
                &["Distributor", "Series publisher", "Sold by"],
                "seller",
                OneOf(HOUSES),
            ),
            part(
                "",
                &["Format", "Binding"],
                "bookFormat",
                OneOf(&["Hardcover", "Paperback", "Audio CD", "Library binding"]),
            ),
            part("", &["Barcode", "Item EAN (box)"], "", Isbn),
        ],
    },
    Vertical {
        name: "camera",
        schema: "Product",
        fields: &[
            part(
                "model",
                &["Model", "Product", "Name", "Item"],
                "name",
                Name(MODELS, CODES),
            ),
            part(
                "price",
                &[
                    "Price",
                    "Our Price",
                    "Sale Price",
                    "Today's price",
                    "You pay",
                ],
                "price",
                Money(4_999, 99_999),
            ),
            part(
                "manufacturer",
                &["Manufacturer", "Brand", "Maker", "Brand name", "Mfr."],
                "brand",
                OneOf(BRANDS),
            ),
        ],
        beside: &[
            part(
                "",
                &["List Price", "Was", "Retail", "MSRP"],
                "",
                Money(5_999, 129_999),
            ),
            part(
                "",
                &["You save", "Savings", "Rebate"],
                "",
                Money(500, 9_999),
            ),
            part(
                "",
                &["Shipping", "Delivery", "Freight"],
                "",
                Money(299, 2_999),
            ),
            part(
                "",
                &["Weight", "Item weight", "Shipping weight"],
                "weight",
                Number(90, 900, " g"),
            ),
            part(
                "",
                &["Resolution", "Megapixels", "Sensor"],
                "",
                Number(5, 21, " MP"),
            ),
            part(
                "",
                &["Lens maker", "Battery maker", "Compatible with"],
                "",
                OneOf(BRANDS),
            ),
            part(
                "",
                &["Colour", "Color", "Finish"],
                "color",
                OneOf(&["Black", "Silver", "Red", "Blue", "White"]),
            ),
            part("", &["First available", "Added", "Launched"], "", Day),
        ],
    },
    Vertical {
        name: "job",
        schema: "JobPosting",
        fields: &[
            part(
                "title",
                &["Job title", "Position", "Role", "Title"],
                "title",
                Name(RANKS, JOBS),
            ),
            part(
                "company",
                &["Company", "Employer", "Organization", "Hiring company"],
                "hiringOrganization",
                OneOf(FIRMS),
            ),
            part(
                "location",
                &["Location", "City", "Where", "Work location", "Job location"],
                "jobLocation",
                OneOf(PLACES),
            ),
            part(
                "date_posted",
                &["Posted", "Date posted", "Posted on", "Listed", "Post date"],
                "datePosted",
                Day,
            ),
        ],
        beside: &[
            part(
                "",
                &["Closing date", "Apply by", "Deadline"],
                "validThrough",
                Day,
            ),
            part("", &["Start date", "Begins", "Starting"], "", Day),
            part(
                "",
                &["Salary", "Pay", "Compensation"],
                "baseSalary",
                Money(2_500_000, 9_900_000),
            ),
            part(
                "",
                &["Recruiter", "Agency", "Parent company"],
                "",
                OneOf(FIRMS),
            ),
            part("", &["Contact", "Hiring manager"], "", Person),
            part(
                "",
                &["Head office", "Interviews in", "Headquarters"],
                "",
                OneOf(PLACES),
            ),
            part(
                "",
                &["Type", "Job type", "Employment"],
                "employmentType",
                OneOf(&["Full time", "Part time", "Contract", "Temporary"]),
            ),
            part(
                "",
                &["Reference", "Job ID", "Req. number"],
                "",
                Number(10_000, 99_999, ""),
            ),
        ],
    },
    Vertical {
        name: "movie",
        schema: "Movie",
        fields: &[
            part(
                "title",
                &["Title", "Film", "Movie", "Name"],
                "name",
                Name(MANNERS, NOUNS),
            ),
            part(
                "director",
                &["Director", "Directed by", "Directors", "Direction"],
                "director",
                Person,
            ),
            part(
                "genre",
                &["Genre", "Genres", "Category", "Kind of film"],
                "genre",
                SomeOf(GENRES),
            ),
            part(
                "mpaa_rating",
                &["MPAA rating", "Rated", "Rating", "Certificate"],
                "contentRating",
                OneOf(&["G", "PG", "PG-13", "R", "NC-17"]),
            ),
        ],
        beside: &[
            part(
                "",
                &["Writer", "Screenplay", "Written by"],
                "author",
                Person,
            ),
            part(
                "",
                &["Producer", "Produced by", "Cinematography"],
                "producer",
                Person,
            ),
            part(
                "",
                &["Runtime", "Running time", "Length"],
                "duration",
                Duration,
            ),
            part(
                "",
                &["Release date", "Opened", "In theaters"],
                "datePublished",
                Day,
            ),
            part("", &["DVD", "On DVD", "Home release"], "", Day),
            part(
                "",
                &["Box office", "Gross", "Budget"],
                "",
                Money(100_000_000, 900_000_000),
            ),
            part(
                "",
                &["Critics", "Score", "User score"],
                "ratingValue",
                Number(20, 99, ""),
            ),
        ],
    },
    Vertical {
        name: "player",
        schema: "Person",
        fields: &[
            part(
                "name",
                &["Name", "Player", "Full name", "Athlete"],
                "name",
                Person,
            ),
            part(
                "team",
                &["Team", "Club", "Current team", "Plays for"],
                "affiliation",
                OneOf(TEAMS),
            ),
            part(
                "height",
                &["Height", "Ht", "Height (ft)", "Size"],
                "height",
                Height,
            ),
            part(
                "weight",
                &["Weight", "Wt", "Weight (lb)", "Mass"],
                "weight",
                Number(165, 290, " lbs"),
            ),
        ],
        beside: &[
            part("", &["Born", "Date of birth", "Birthday"], "birthDate", Day),
            part(
                "",
                &["Former team", "Drafted by", "Next opponent"],
                "",
                OneOf(TEAMS),
            ),
            part("", &["Coach", "Agent", "Head coach"], "", Person),
            part("", &["Wingspan", "Reach", "Vertical"], "", Height),
            part(
                "",
                &["Points", "Career points", "Total"],
                "",
                Number(100, 20_000, ""),
            ),
            part(
                "",
                &["Bench press", "College weight", "Max. squat"],
                "",
                Number(165, 390, " lbs"),
            ),
            part(
                "",
                &["Position", "Pos.", "Plays"],
                "",
                OneOf(&["Guard", "Forward", "Center"]),
            ),
        ],
    },
    Vertical {
        name: "restaurant",
        schema: "Restaurant",
        fields: &[
            part(
                "name",
                &["Name", "Restaurant", "Venue"],
                "name",
                Name(
                    SAINTS,
                    &[
                        "Grill",
                        "Bistro",
                        "Kitchen",
                        "Diner",
                        "Tavern",
                        "Cantina",
                        "Brasserie",
                        "Table",
                        "Oven",
                    ],
                ),
            ),
            part(
                "address",
                &["Address", "Street address", "Where", "Find us"],
                "streetAddress",
                Address,
            ),
            part(
                "phone",
                &["Phone", "Telephone", "Call", "Tel.", "Phone number"],
                "telephone",
                Phone,
            ),
            part(
                "cuisine",
                &["Cuisine", "Food", "Cuisines", "Style of food"],
                "servesCuisine",
                OneOf(CUISINES),
            ),
        ],
        beside: &[
            part(
                "",
                &["Fax", "Fax number", "Catering line"],
                "faxNumber",
                Phone,
            ),
            part(
                "",
                &["Parking at", "Sister restaurant at", "Mailing address"],
                "",
                Address,
            ),
            part(
                "",
                &["Average price", "Entrees from", "Dinner from"],
                "priceRange",
                Money(900, 5_900),
            ),
            part("", &["Opened", "Reviewed on", "Updated"], "", Day),
            part("", &["Chef", "Owner", "Reviewer"], "founder", Person),
            part(
                "",
                &["Nearby", "Similar", "Also in the area"],
                "",
                OneOf(CUISINES),
            ),
            part(
                "",
                &["Seats", "Capacity", "Tables"],
                "",
                Number(20, 220, ""),
            ),
        ],
    },
    Vertical {
        name: "university",
        schema: "CollegeOrUniversity",
        fields: &[
            part(
                "name",
                &["Name", "School", "Institution", "University"],
                "name",
                Name(
                    SAINTS,
                    &[
                        "University",
                        "College",
                        "Institute",
                        "State University",
                        "Polytechnic",
                        "Seminary",
                    ],
                ),
            ),
            part(
                "phone",
                &[
                    "Phone",
                    "Telephone",
                    "Main number",
                    "General information",
                    "Tel",
                ],
                "telephone",
                Phone,
            ),
            part(
                "website",
                &["Website", "Web site", "URL", "Homepage", "On the web"],
                "url",
                Website,
            ),
            part(
                "type",
                &["Type", "School type", "Control", "Institution type"],
                "",
                OneOf(&[
                    "Public",
                    "Private",
                    "Private for-profit",
                    "Religious",
                    "Federal",
                ]),
            ),
        ],
        beside: &[
            part(
                "",
                &["Admissions office", "Financial aid", "Fax"],
                "faxNumber",
                Phone,
            ),
            part(
                "",
                &["Tuition", "In-state tuition", "Room and board"],
                "",
                Money(500_000, 4_500_000),
            ),
            part(
                "",
                &["Students", "Enrollment", "Undergraduates"],
                "",
                Number(800, 40_000, ""),
            ),
            part(
                "",
                &["Net price calculator", "Athletics site", "Apply at"],
                "",
                Website,
            ),
            part("", &["President", "Dean", "Contact"], "", Person),
            part(
                "",
                &["Setting", "Campus", "Surroundings"],
                "",
                OneOf(&["Urban", "Rural", "Suburban", "Town"]),
            ),
            part("", &["Deadline", "Apply by", "Founded"], "", Day),
        ],
    },
];

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
