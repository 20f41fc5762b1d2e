// Owns the rows of the lookup bench as Flink POJOs.
package bench;

import com.fasterxml.jackson.annotation.JsonUnwrapped;

/** The topics' rows and what the job makes of them; numbers are primitive, as no field is null. */
public final class Rows {
    private Rows() {}

    public static class Order {
        public long invoiceId;
        public long lineItemId;
        public long userId;
        public long itemId;
        public String itemName;
        public String itemCategory;
        public double price;
        public long createdAt;
        public long paidAt;
    }

    public static class User {
        public long id;
        public String firstName;
        public String lastName;
        public String emailAddress;
        public long createdAt;
        public long deletedAt;
        public long mergedAt;
        public long parentUserId;
    }

    public static class Item {
        public long id;
        public long createdAt;
        public String adjective;
        public String category;
        public String modifier;
        public String name;
        public double price;
    }

    public static class OrderUser {
        @JsonUnwrapped public Order order;
        public User user;
    }

    public static class Enriched {
        public long invoiceId;
        public long lineItemId;
        public User user;
        public Item item;
        public long createdAt;
        public long paidAt;
    }
}
