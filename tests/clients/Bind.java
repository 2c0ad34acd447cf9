/** Binds a value of each type with JDBC, to a question over a public table with three rows: "read" where all three are counted. */
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.UUID;

public class Bind {
    interface Setter { void set(PreparedStatement statement) throws SQLException; }

    static Connection connection;

    static void check(String name, String condition, int expected, Setter setter) throws SQLException {
        for (int i = 0; i < 7; i++) {  // the driver prepares on the server, and turns to binary, from the fifth time on
            try (PreparedStatement statement = connection.prepareStatement("SELECT count(*) AS n FROM towns WHERE " + condition)) {
                setter.set(statement);
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    if (rows.getLong(1) != expected) {
                        System.out.println("misread " + name + " " + rows.getLong(1));
                        return;
                    }
                }
            } catch (SQLException error) {
                System.out.println("failed " + name + " " + error.getMessage());
                return;
            }
        }
        System.out.println("read " + name);
    }

    public static void main(String[] arguments) throws Exception {
        String address = "jdbc:postgresql://127.0.0.1:" + System.getenv("SECANT_PORT") + "/shop?user=ana&sslmode=require"
            + (arguments[0].equals("binary") ? "&prepareThreshold=-1" : "&binaryTransfer=false");
        connection = DriverManager.getConnection(address, "ana", System.getenv("PGPASSWORD"));
        LocalDate day = LocalDate.of(2025, 3, 1);
        LocalDateTime moment = LocalDateTime.of(2025, 3, 1, 8, 30, 0, 250_000_000);
        OffsetDateTime offset = moment.atZone(ZoneId.systemDefault()).toOffsetDateTime();
        UUID uuid = UUID.fromString("b0a0f4e0-0000-4000-8000-000000000001");
        String ofDay = "DATE '2025-03-01' = ?", ofMoment = "TIMESTAMP '2025-03-01 08:30:00.25' = ?";
        check("setDate", ofDay, 3, s -> s.setDate(1, Date.valueOf(day)));
        check("Date", ofDay, 3, s -> s.setObject(1, Date.valueOf(day)));
        check("LocalDate", ofDay, 3, s -> s.setObject(1, day));
        check("setTimestamp", ofMoment, 3, s -> s.setTimestamp(1, Timestamp.valueOf(moment)));
        check("Timestamp", ofMoment, 3, s -> s.setObject(1, Timestamp.valueOf(moment)));
        check("LocalDateTime", ofMoment, 3, s -> s.setObject(1, moment));
        check("OffsetDateTime", ofMoment, 3, s -> s.setObject(1, offset));
        check("LocalTime", "'08:30:00' = ?", 3, s -> s.setObject(1, LocalTime.of(8, 30)));
        check("setInt", "people = ?", 1, s -> s.setInt(1, 95000));
        check("setLong", "people = ?", 1, s -> s.setLong(1, 95000L));
        check("setShort", "people > ?", 3, s -> s.setShort(1, (short) 7));
        check("setDouble", "0.1e0 = ?", 3, s -> s.setDouble(1, 0.1));
        check("setFloat", "0.5e0 = ?", 3, s -> s.setFloat(1, 0.5f));
        check("setBigDecimal", "1.50 = ?", 3, s -> s.setBigDecimal(1, new BigDecimal("1.50")));
        check("setBoolean", "(people > 5) = ?", 3, s -> s.setBoolean(1, true));
        check("setString", "country = ?", 1, s -> s.setString(1, "LV"));
        check("setNull", "people = ?", 0, s -> s.setNull(1, Types.BIGINT));
        check("setNull date", "DATE '2025-03-01' = ?", 0, s -> s.setNull(1, Types.DATE));
        check("UUID", "'" + uuid + "' = ?", 3, s -> s.setObject(1, uuid));
        check("text array", "country = ANY(?)", 2, s -> s.setArray(1, connection.createArrayOf("text", new String[] {"LV", "EE"})));
        check("int8 array", "people = ANY(?)", 1, s -> s.setArray(1, connection.createArrayOf("int8", new Long[] {95000L, 3L})));
        check("between", "DATE '2025-03-01' BETWEEN ? AND '2025-03-02'", 3, s -> s.setDate(1, Date.valueOf(day)));
        connection.close();
    }
}
